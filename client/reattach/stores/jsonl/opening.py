"""Opening a JSONL journal: new, ours, another's file, of a newer schema, with a torn end, or damaged. Once a file and process.

What a crash can leave is repaired: an end that never was told durable is cut off. Everything else is damage: the file is put aside
whole and named. FILE-marks tells the two apart: it notes the last line that was durable, so a file that ends before it was cut.
"""

from __future__ import annotations

import os
import secrets
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from reattach.stores.aside import renamed
from reattach.stores.base import StoreDamaged, StoreFailed, StoreForeign, StoreNewer
from reattach.stores.jsonl import lines, logfile
from reattach.stores.jsonl.journal import Journal, failing, noted_seq
from reattach.stores.jsonl.lock import Lock
from reattach.stores.jsonl.tables import JOURNAL_SLOT, Tables
from reattach.stores.marks import MarksFile

_SNIFFED = 4096  # bytes

_open: dict[Path, Journal] = {}
_opening = threading.Lock()


def enter(path: Path, now: str) -> Journal:
    """Return the journal at `path`, for one more user of it; `now` is the time in the name of a file that is put aside.

    Raises:
        StoreDamaged: It was unreadable and is put aside.
        StoreForeign: It never was a journal, and is as it was.
        StoreNewer: It is of a newer schema, and is as it was.
        StoreTaken: Another process has it open.
        StoreFailed: It cannot be made, read or written.
    """
    with _opening:
        journal = _open.get(path)
        if journal is None or not journal.is_open:
            journal = _open[path] = _opened(path, now)
        journal.join()
        return journal


def leave(journal: Journal) -> None:
    """Have one user of it less; it is closed with the last."""
    with _opening:
        if journal.leave() and _open.get(journal.path) is journal:
            del _open[journal.path]


class Found(NamedTuple):
    """What a file holds: its state, the number of its last good line, the bytes up to its end, and what follows there."""

    tables: Tables
    journal: bytes
    seq: int
    good: int
    rest: str
    """"" nothing, "torn" no good line, else what is wrong: there are good lines behind."""


def read(path: Path) -> Found:
    """Read a file whole, up to what is not as it was written.

    Raises:
        ValueError: It is not a journal of this schema from its first line on; the text says where and why.
        OSError: It cannot be read.
    """
    tables = Tables()
    journal = b""
    seq = good = 0
    with path.open("rb") as file:
        for raw in file:
            if not (raw.endswith(b"\n") and lines.is_good(raw[:-1])):
                break
            said = lines.parsed(raw[:-1])
            if not journal:
                if said.kind != "journal":
                    raise ValueError("unreadable from byte 0 (its first line is missing)")
                journal = bytes.fromhex(said.told["journal"])
            elif said.seq != seq + 1:
                raise ValueError(f"unreadable from byte {good} (line {said.seq} follows {seq})")
            tables.apply(said, good, len(raw) - 1)
            seq = said.seq
            good += len(raw)
        else:
            return Found(tables, journal, seq, good, "")
        told = "all zero" if not raw.strip(b"\0\n") else "not as it was written"
        broken = f"unreadable from byte {good} ({told})"
        if not journal:
            raise ValueError(broken)
        later = any(lines.is_good(raw.rstrip(b"\n")) for raw in file)
        return Found(tables, journal, seq, good, broken if later else "torn")


def still_readable(path: Path) -> tuple[tuple[str, str, str], ...]:
    """Return (server, profile, run id) of the runs in the lines that are good and that are not known to be done with."""
    tables = Tables()
    with suppress(OSError), path.open("rb") as file:
        for raw in file:
            # After zeros that took the end of a line, the next one begins behind them.
            line = raw.rstrip(b"\n").lstrip(b"\0")
            if lines.is_good(line):
                with suppress(ValueError):
                    tables.apply(lines.parsed(line), 0, 0)
    return tables.undone()


def _opened(path: Path, now: str) -> Journal:
    if not path.parent.is_dir():
        raise StoreFailed(f"its folder {str(path.parent)!r} does not exist")
    with failing():
        if path.exists() and not path.is_file():
            raise StoreFailed("it is no regular file")  # opening a pipe would wait for its other end, for ever
        _refuse_others(path)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else logfile.MODE
        lock = Lock(_beside(path, "-lock"), mode, now)
    try:
        with failing():
            return _locked(path, lock, mode, now)
    except BaseException:
        lock.release()
        raise


def _locked(path: Path, lock: Lock, mode: int, now: str) -> Journal:
    marks_path = _beside(path, "-marks")
    _beside(path, ".new").unlink(missing_ok=True)
    _refuse_others(path)
    if not path.exists() or not path.stat().st_size:
        if path.exists() and marks_path.exists() and marks_path.stat().st_size:
            _put_aside(path, "empty, though it had marks", now)
        told: dict[str, Any] = {"journal": secrets.token_hex(16), "generation": 1, "made_at": now}
        told |= {"last_run": 0, "last_number": JOURNAL_SLOT}
        logfile.make(path, lines.title(0, told), mode)
    try:
        found = read(path)
    except ValueError as error:
        _put_aside(path, str(error) if str(error).startswith("unreadable") else f"unreadable ({error})", now)
    ours = MarksFile.belongs(marks_path, found.journal)
    marks = MarksFile(marks_path, found.journal, mode) if ours else None
    durable = noted_seq(marks, found.tables.title["generation"]) if marks is not None else None
    if found.rest not in ("", "torn"):
        _put_aside(path, found.rest, now)
    if durable is not None and durable > found.seq:
        _put_aside(path, f"cut off at byte {found.good} (line {found.seq} of {durable})", now)
    if found.rest and durable is None:
        _put_aside(path, f"unreadable from byte {found.good}, and without its marks", now)
    file = logfile.LogFile(path, found.good, path.parent)
    try:
        if marks is None:
            marks = MarksFile(marks_path, found.journal, mode)
        file.settle()
        journal = Journal(path, lock, file, found.tables, marks, found.seq)
        marks.flush()
        return journal
    except BaseException:
        file.close()
        raise


def _refuse_others(path: Path) -> None:
    """Refuse what never was a journal of ours, as a mistyped path finds, and what is of a newer schema.

    Raises:
        StoreForeign, StoreNewer: It is, and is left as it is.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        first = file.read(_SNIFFED)
    version = lines.version_of(first)
    if version is None:
        if first and not lines.is_begun(first) and not _beside(path, "-marks").exists():
            raise StoreForeign("a file of another kind, no journal")
    elif version > lines.VERSION:
        raise StoreNewer(
            f"of schema {version}, newer than this version of reattach knows ({lines.VERSION}); it was not changed"
        )


def _put_aside(path: Path, detail: str, now: str) -> NoReturn:
    aside = renamed(path, ("-marks",), now)
    raise StoreDamaged(detail, str(aside), still_readable(aside))


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _in_child() -> None:
    # Another thread of the parent may have been opening; what was open is closed here by `forks`.
    global _opening
    _opening = threading.Lock()
    _open.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_in_child)
