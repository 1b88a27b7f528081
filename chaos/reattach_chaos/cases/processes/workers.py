"""`Workers`: processes that are one client after the other (`worker.py`), as many as are needed at a time, each for a while."""

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from reattach_chaos.cases.processes.order import Word
from reattach_chaos.cases.processes.process import LINE_BYTES, BornProcess
from reattach_chaos.socket_path import short

LIVES = 200
"""So many clients one process is; then it goes, with all that was left behind in it."""
_MODULE = "reattach_chaos.cases.processes.worker"


class Worker:
    """One such process, between two clients or being one."""

    def __init__(self, process: BornProcess, path: Path) -> None:
        self.process = process
        self.path = path
        self.left = LIVES

    def end(self) -> None:
        """End it; it may have ended."""
        self.process.close()


class WorkedProcess:
    """A client that a worker is; see `Process`."""

    def __init__(self, workers: "Workers", worker: Worker, client: BornProcess) -> None:
        self._workers = workers
        self._worker = worker
        self._client = client
        self._over = False

    async def line(self) -> str | None:
        """See the seam."""
        line = await self._client.line()
        if line is None and not self._over:
            self._over = True
            if self._client.ended:
                self._workers.take_back(self._worker)
        return line

    def signal(self, word: Word) -> None:
        """See the seam."""
        if not self._over:
            self._worker.process.signal(word)

    async def code(self) -> int:
        """See the seam."""
        while not self._over:
            await self.line()
        return await (self._client if self._client.ended else self._worker.process).code()


class Workers:
    """All of them; ended by the nursery, too, when that goes.

    Args:
        nursery: Where they are born.
        folder: For their sockets.
    """

    def __init__(self, nursery: Path, folder: Path) -> None:
        self._nursery = nursery
        self._folder = folder
        self._free: list[Worker] = []
        self._count = 0

    async def start(self, module: str, argv: Sequence[str], env: Mapping[str, str], stderr: Path) -> WorkedProcess:
        """Let one be a client.

        Raises:
            OSError: It cannot be had.
        """
        while self._free:
            worker = self._free.pop()
            with contextlib.suppress(OSError):  # it has ended: another one
                return await self._be(worker, module, argv, env, stderr)
            worker.end()
        return await self._be(await self._new(), module, argv, env, stderr)

    def take_back(self, worker: Worker) -> None:
        """A client has ended, its process has not."""
        worker.left -= 1
        if worker.left:
            self._free.append(worker)
        else:
            worker.end()

    def close(self) -> None:
        """End those that wait for a client."""
        while self._free:
            self._free.pop().end()

    async def _new(self) -> Worker:
        self._count += 1
        path = self._folder / f"worker-{self._count}"
        process = await BornProcess.bear(self._nursery, _MODULE, [str(path)], {}, path.with_suffix(".stderr"))
        if await process.line() is None:
            raise ConnectionError("a client's process ended at once")
        return Worker(process, path)

    async def _be(
        self, worker: Worker, module: str, argv: Sequence[str], env: Mapping[str, str], stderr: Path
    ) -> WorkedProcess:
        with short(worker.path) as address:
            reader, writer = await asyncio.open_unix_connection(address, limit=LINE_BYTES)
        order = {"module": module, "argv": list(argv), "env": dict(env), "stderr": str(stderr)}
        writer.write(json.dumps(order).encode() + b"\n")
        await writer.drain()
        return WorkedProcess(self, worker, BornProcess(reader, writer))
