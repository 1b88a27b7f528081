"""A child process that speaks JSON lines: started or born, listened to, and ended by its own process id.

Each has a session of its own, so that a Ctrl-C at the terminal reaches us only, and we end them in order. All of them end with
their stdin, so that none outlives us even after kill -9. Whatever it says is kept in a file, its stderr in another.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from reattach_chaos.socket_path import short

LINE_BYTES = 16 * 1024 * 1024
GRACE_S = 5.0
BIRTH_S = 30.0


class ChildFailed(Exception):
    """A child ended, or said nothing, where it was needed; the message names it and its last words."""


class Child:
    """One process; make it with `spawn`, or with `bear` in a nursery. What it says is kept in FOLDER under its name."""

    def __init__(
        self, name: str, kept: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int
    ) -> None:
        self.name = name
        self.pid = pid
        self._reader = reader
        self._writer = writer
        self._stderr = kept.with_suffix(".stderr")
        self._kept = kept.open("ab")
        self._process: asyncio.subprocess.Process | None = None

    @classmethod
    async def spawn(cls, name: str, module: str, *args: str, folder: Path) -> "Child":
        """Start `python -m MODULE ARGS`."""
        kept = _kept(name, folder)
        with kept.with_suffix(".stderr").open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", module, *args,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=stderr,
                limit=LINE_BYTES, start_new_session=True,
            )  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        child = cls(name, kept, process.stdout, process.stdin, process.pid)
        child._process = process
        return child

    @classmethod
    async def bear(cls, name: str, module: str, *args: str, nursery: Path, folder: Path) -> "Child":
        """Let the nursery that listens at this socket fork one.

        Raises:
            ChildFailed: The nursery is gone.
        """
        kept = _kept(name, folder)
        try:
            with short(nursery) as address:
                reader, writer = await asyncio.open_unix_connection(address, limit=LINE_BYTES)
        except OSError as error:
            raise ChildFailed(f"{name} could not be started: {error}") from error
        child = cls(name, kept, reader, writer, 0)
        child.tell({"module": module, "argv": args, "stderr": str(kept.with_suffix(".stderr"))})
        child.pid = (await child.first_line(BIRTH_S))["pid"]
        return child

    def tell(self, order: Any) -> None:
        """Send it one line; a child that has ended does not hear it."""
        with contextlib.suppress(OSError):
            self._writer.write(json.dumps(order).encode() + b"\n")

    async def line(self) -> dict[str, Any] | None:
        """Return what it says next; None when it has ended. Half a line, as a kill leaves it, was not said."""
        while (line := await self._read_line()).endswith(b"\n"):
            self._kept.write(line)
            self._kept.flush()
            with contextlib.suppress(ValueError):
                said = json.loads(line)
                if isinstance(said, dict):
                    return said
        return None

    async def first_line(self, limit: float) -> dict[str, Any]:
        """Return the first thing that it says.

        Raises:
            ChildFailed: It ended, or took more than `limit` seconds.
        """
        try:
            said = await asyncio.wait_for(self.line(), limit)
        except TimeoutError:
            raise ChildFailed(f"{self.name} (pid {self.pid}) said nothing for {limit:g} s") from None
        if said is None:
            await self.wait()
            raise ChildFailed(f"{self.name} (pid {self.pid}) ended at once: {self.last_words()}")
        return said

    def kill(self) -> None:
        """End it with SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            if self._process is not None:
                self._process.kill()  # knows whether it has ended
            elif self.pid and not self._reader.at_eof():
                os.kill(self.pid, signal.SIGKILL)

    async def wait(self) -> None:
        """Wait for its end."""
        if self._process is not None:
            await self._process.wait()
        else:
            while await self._read_line():
                pass

    async def end(self) -> None:
        """Ask it to end, then make it: never more than GRACE_S."""
        try:
            self._writer.close()
            if self._process is not None and self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._process.wait(), GRACE_S)
        finally:
            self.kill()
            if self._process is not None:
                await self._process.wait()
            self._kept.close()

    async def _read_line(self) -> bytes:
        try:
            return await self._reader.readline()
        except OSError:
            return b""

    def last_words(self) -> str:
        """Return the last line of its stderr."""
        if not self._stderr.exists():
            return "no word on stderr"
        words = self._stderr.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return words[-1] if words else "no word on stderr"


def _kept(name: str, folder: Path) -> Path:
    return folder / f"{name.replace(' ', '-')}.jsonl"
