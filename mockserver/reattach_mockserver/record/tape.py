"""The file of a recording while it is made: a header, then an event a line, gone on with where an earlier process was stopped.

A line is out when `add` returns. What a killed process left is looked at before anything is added: half a line is taken off, and
the lines that are whole are compared, one by one, with the events that come again, so that none is lost and none doubled. Only
one process at a time has a tape. Knows no client and no server.

Where the rules come from: the surface page, section 5, Recording. Checked by tests/mockserver/record/test_tape.py.
"""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO


class TapeError(Exception):
    """The file cannot be this recording's; the text says why and what to do. `busy`: another process has it."""

    def __init__(self, text: str, *, busy: bool = False) -> None:
        super().__init__(text)
        self.busy = busy


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the first line says: whose run it is, by which profile, and when recording began (RFC 3339)."""

    profile: str
    recorded_at: str
    run_id: str
    server: str

    def line(self) -> bytes:
        """Return the line."""
        told = {
            "reattach": "recording/1",
            "profile": self.profile,
            "recorded_at": self.recorded_at,
            "run": {"id": self.run_id, "server": self.server},
        }
        return _line(told)


class Tape:
    """One recording's file. Use as a context manager.

    Args:
        path: The file; it is made if it is not there.
        header: What its first line is to say; if the file has one, all but its time must agree.

    Attributes:
        made: Whether the file was made, or found empty.
        last_ms: The time of the last line that has one, 0 without.
        ends: The type of the last event that it held, None without one.

    Raises:
        TapeError: The file is something else, another run's recording, or in another process's hands.
        OSError: It cannot be opened or read.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._header = header
        self.last_ms = 0
        self._file: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        try:
            self._take()
            self._known = self._whole()
        except BaseException:
            self._file.close()
            raise
        self.made = self._known is None
        self.ends: str | None = self._known[-1][1] if self._known else None
        self._compared = 0

    def __enter__(self) -> "Tape":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def length(self) -> int:
        """How many events it holds."""
        return len(self._known or ())

    def _take(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TapeError(
                f"{self.path} is being recorded by another process; let it go on, or name another file", busy=True
            ) from None

    def _whole(self) -> list[tuple[Any, Any]] | None:
        """Return id and type of the lines that are whole, take a damaged end off; None where there is nothing yet."""
        good, lines = 0, []
        for number, text in enumerate(self._file, 1):
            line = _object(text) if text.endswith(b"\n") else None
            if number == 1 and text.endswith(b"\n"):
                self._check(line)
            elif line is None:
                break
            else:
                lines.append((line.get("id"), line.get("type")))
                at_ms = line.get("at_ms")
                self.last_ms = max(self.last_ms, at_ms if isinstance(at_ms, int) else 0)
            good += len(text)
        # What a kill or a lost power supply left at the end comes again; in the middle it was somebody else.
        if any(_object(text) is not None for text in self._file):
            raise TapeError(f"{self.path}:{len(lines) + 2}: is no event, and others follow it; name another file")
        self._file.truncate(good)
        self._file.seek(good)
        return lines if good else None

    def _check(self, line: dict[str, Any] | None) -> None:
        mine = self._header
        if line is None or line.get("reattach") != "recording/1":
            raise TapeError(f"{self.path} is there already, and is no recording; name another file, or remove it")
        run = line.get("run")
        told = (run.get("id"), run.get("server")) if isinstance(run, dict) else (None, None)
        if told != (mine.run_id, mine.server) or line.get("profile") != mine.profile:
            raise TapeError(
                f"{self.path} is there already, a recording of run {told[0]!r} of {told[1]} by the profile "
                f"{line.get('profile')!r}; name another file, or remove it"
            )

    def add(self, event: dict[str, Any]) -> bool:
        """Write an event, or find that it is there already; return whether it was written.

        Raises:
            TapeError: Another event is there in its place.
            OSError: It cannot be written.
        """
        if self._compared < self.length and self._known is not None:
            there, mine = self._known[self._compared], (event.get("id"), event.get("type"))
            self._compared += 1
            if there != mine:
                raise TapeError(
                    f"{self.path}:{self._compared + 1}: holds the event {there!r:.120}, the run has {mine!r:.120} there; "
                    "name another file"
                )
            return False
        if self._known is None:
            self._file.write(self._header.line())
            self._known = []
        self._file.write(_line(event))
        self._file.flush()
        return True

    def finish(self) -> None:
        """Be on disk.

        Raises:
            TapeError: It holds more events than came.
            OSError: It cannot be written.
        """
        if self._compared < self.length:
            raise TapeError(f"{self.path} holds {self.length} events, the run has {self._compared}; name another file")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file; one that was made and got no event goes."""
        if self.made and not self._file.closed and os.fstat(self._file.fileno()).st_size == 0:
            self.path.unlink(missing_ok=True)
        self._file.close()


def _line(value: dict[str, Any]) -> bytes:
    try:
        return (json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:
        # Half a surrogate pair is legal as a JSON escape and as nothing else: no reader of the file could send it on.
        return _line(_mended(value))


def _mended(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_mended(item) for item in value]
        case dict():
            return {_mended(name): _mended(member) for name, member in value.items()}
        case _:
            return value


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
