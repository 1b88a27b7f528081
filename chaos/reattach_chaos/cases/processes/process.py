"""`Process`: one process of a client under test: its lines, its signals, its end. Started by the shell, or forked by the nursery.

Each has a process group of its own, so that a kill takes all that it started. Every line is kept; one of more than 1 MiB is cut off
there, and is none of the contract's. Nothing here knows what a line means.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from reattach_chaos.cases.processes.order import EXITED, SIGNALS, Word
from reattach_chaos.socket_path import short

LINE_BYTES = 1 << 20
GRACE_S = 2.0
_ONCE_TOLD = "read _ || exit 137; exec </dev/null\n"
"""Before a command: were we ended between its birth and its registration, it would be nobody's; so it begins after that."""


class Process(Protocol):
    """One process group that speaks lines."""

    async def line(self) -> str | None:
        """Return what it says next, without the line end; None when it has ended."""
        ...

    def signal(self, word: Word) -> None:
        """Send the whole group a signal: to end it, to let it stand still or go on. One that has ended does not hear it."""
        ...

    async def code(self) -> int:
        """Wait for its end; return its exit code, negative for a signal's number."""
        ...


class ShellProcess:
    """A command that the shell runs; make it with `spawn`."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader) -> None:
        self._process = process
        self._reader = reader

    @classmethod
    async def spawn(
        cls, command: str, env: Mapping[str, str], stderr: Path, born: Callable[[int], None] = lambda pid: None
    ) -> "ShellProcess":
        """Start it.

        Args:
            command: What the shell runs.
            env: Its environment, all of it.
            stderr: The file that its stderr is added to.
            born: Told the shell's process id, before the command begins.

        Raises:
            OSError: The shell cannot be started.
        """
        with stderr.open("ab") as errors:
            process = await asyncio.create_subprocess_shell(
                _ONCE_TOLD + command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=dict(env),
                limit=LINE_BYTES,
                start_new_session=True,
            )
        assert process.stdout is not None
        assert process.stdin is not None
        born(process.pid)
        process.stdin.write(b"\n")
        process.stdin.close()
        return cls(process, process.stdout)

    async def line(self) -> str | None:
        """See the seam."""
        return await _line(self._reader)

    def signal(self, word: Word) -> None:
        """See the seam. A shell that has ended has no group any more that is certainly its own."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, SIGNALS[word])

    async def code(self) -> int:
        """See the seam."""
        return await self._process.wait()


class BornProcess:
    """A client that the nursery forked; make it with `bear`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._code: int | None = None

    @classmethod
    async def bear(
        cls, nursery: Path, module: str, argv: Sequence[str], env: Mapping[str, str], stderr: Path
    ) -> "BornProcess":
        """Let it be forked.

        Raises:
            OSError: The nursery is gone.
        """
        with short(nursery) as address:
            reader, writer = await asyncio.open_unix_connection(address, limit=LINE_BYTES)
        order = {"module": module, "argv": list(argv), "env": dict(env), "stderr": str(stderr)}
        writer.write(json.dumps(order).encode() + b"\n")
        await writer.drain()
        return cls(reader, writer)

    def close(self) -> None:
        """Hang up; the nursery ends what lives without a listener."""
        self._writer.close()

    @property
    def ended(self) -> bool:
        """Whether its exit code is known."""
        return self._code is not None

    async def line(self) -> str | None:
        """See the seam."""
        while (line := await _line(self._reader)) is not None:
            if line.startswith(EXITED):
                self._code = int(line.removeprefix(EXITED))
                self._writer.close()
                return None
            if (
                line
            ):  # the nursery's word begins with a line end, so that it cannot be taken for the rest of half a line
                return line
        self._writer.close()
        return None

    def signal(self, word: Word) -> None:
        """See the seam."""
        if self._code is None and not self._writer.is_closing():
            self._writer.write(f"{word}\n".encode())

    async def code(self) -> int:
        """See the seam; -9 where the nursery is gone."""
        while self._code is None and await self.line() is not None:
            pass
        return -signal.SIGKILL if self._code is None else self._code


async def _line(reader: asyncio.StreamReader) -> str | None:
    """Return the next whole line; of one that is too long, its beginning."""
    try:
        data = await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        data = await reader.read(LINE_BYTES)
        with contextlib.suppress(asyncio.IncompleteReadError):
            await _skip_line(reader)
    except OSError:
        return None
    return data.decode("utf-8", "replace").rstrip("\r\n")


async def _skip_line(reader: asyncio.StreamReader) -> None:
    while True:
        try:
            await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            await reader.readexactly(error.consumed)
        else:
            return
