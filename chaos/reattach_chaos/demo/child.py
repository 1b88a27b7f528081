"""A child process that speaks JSON lines: started, listened to, and ended by its own process id.

Each has a session of its own, so that a Ctrl-C at the terminal reaches us only, and we end them in order. All of them end with
their stdin, so that none outlives us even after kill -9. Whatever it says is kept in a file, its stderr in another.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

LINE_BYTES = 16 * 1024 * 1024
GRACE_S = 5.0


class ChildFailed(Exception):
    """A child ended, or said nothing, where it was needed; the message names it and its last words."""


class Child:
    """One process; make it with `spawn`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, kept: Path) -> None:
        self.name = name
        self._process = process
        self._stderr = kept.with_suffix(".stderr")
        self._kept = kept.open("ab")

    @classmethod
    async def spawn(cls, name: str, module: str, *args: str, folder: Path) -> "Child":
        """Start `python -m MODULE ARGS`; its output is kept in FOLDER under its name."""
        kept = folder / f"{name.replace(' ', '-')}.jsonl"
        with kept.with_suffix(".stderr").open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", module, *args,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=stderr,
                limit=LINE_BYTES, start_new_session=True,
            )  # fmt: skip
        return cls(name, process, kept)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def tell(self, order: Any) -> None:
        """Send it one line; a child that has ended does not hear it."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def line(self) -> dict[str, Any] | None:
        """Return what it says next; None when it has ended. Half a line, as a kill leaves it, was not said."""
        assert self._process.stdout is not None
        while (line := await self._process.stdout.readline()).endswith(b"\n"):
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
            self._process.kill()

    async def wait(self) -> int:
        """Wait for its end; return its exit code, negative for a signal."""
        return await self._process.wait()

    async def end(self) -> None:
        """Ask it to end, then make it: never more than GRACE_S."""
        assert self._process.stdin is not None
        try:
            if self._process.returncode is None:
                self._process.stdin.close()
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._process.wait(), GRACE_S)
        finally:
            self.kill()
            await self._process.wait()
            self._kept.close()

    def last_words(self) -> str:
        """Return the last line of its stderr."""
        words = self._stderr.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return words[-1] if words else "no word on stderr"
