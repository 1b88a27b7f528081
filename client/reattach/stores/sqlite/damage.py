"""A file that is not a journal any more: say where, put it aside whole, and read from it the runs that can still be read.

Nothing here repairs. The damaged files are renamed, never written; what is read is read from a copy in memory, with the pages
of the write-ahead log laid over it, since after a power cut the log may hold what the file lost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from reattach.stores.aside import renamed
from reattach.stores.base import StoreDamaged

MAGIC = b"SQLite format 3\0"
BESIDE = ("-wal", "-shm", "-marks")
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_READABLE = 1 << 28  # bytes; a larger file is put aside without looking for runs in it
_PAGE = 4096
_CHECKED_WHOLE = 1 << 24  # bytes; up to here every page of our tables is checked at open, some tens of milliseconds

Lost = tuple[tuple[str, str, str], ...]

_RUNS = "SELECT r.server, r.profile, r.run_id FROM reattach_runs AS r WHERE r.run_id IS NOT NULL"
_UNDONE = f"""{_RUNS} AND (r.outcome IS NULL OR NOT r.handed_out AND
    coalesce((SELECT max(applied) FROM reattach_marks WHERE run = r.run), 0) <
    max(coalesce((SELECT max(batch) FROM reattach_batches WHERE run = r.run), 0), coalesce(r.again_to, 0)))"""


def lost_before_opening(path: Path) -> str:
    """Return what is wrong with a file that SQLite itself would take for a new one, "" if nothing.

    SQLite deletes the log of a file without content, and reads what is missing of a last page as zeros, which may lie inside a
    text where no check finds them; so this is asked before SQLite is.
    """
    size = path.stat().st_size if path.exists() else 0
    if size > 1:  # SQLite takes a file of one byte for an empty one, too
        said = _said_size(path)
        # With a log, pages may be in it alone; with a rollback journal, whoever made the file died, and SQLite undoes it.
        whole = size >= said or _size(path, "-wal") or _size(path, "-journal")
        return "" if whole else f"cut off at byte {size}, it had {said} bytes"
    if _size(path, "-wal"):
        return "empty, though its write-ahead log is not"
    if path.exists() and _size(path, "-marks"):
        return "empty, though it had marks"
    return ""


def check(connection: sqlite3.Connection, path: Path, *, suspected: bool) -> None:
    """Look through our tables; all pages of a small or suspected file, else those that are read at every start anyway.

    Raises:
        StoreDamaged: A page is bad.
        sqlite3.DatabaseError: They cannot be read at all.
    """
    tables = [name for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'reattach~_%' ESCAPE '~'"
    )]  # fmt: skip
    if suspected or path.stat().st_size + _size(path, "-wal") <= _CHECKED_WHOLE:
        for name in tables:
            for (verdict,) in connection.execute(f"PRAGMA quick_check({name})"):
                if verdict != "ok":
                    raise StoreDamaged(f"unreadable ({verdict})") from sqlite3.DatabaseError(verdict)
    elif tables:
        connection.execute("SELECT max(length(status)) FROM reattach_runs").fetchone()
        connection.execute("SELECT max(applied) FROM reattach_marks").fetchone()
        connection.execute("SELECT max(token) FROM reattach_leases").fetchone()


def never_was_one(path: Path) -> bool:
    """Return whether the file is another's: of another kind and with nothing of a journal beside it, as a mistyped path finds."""
    with path.open("rb") as file:
        head = file.read(len(MAGIC))
    return bool(head.strip(b"\0")) and head != MAGIC and not any(_size(path, end) for end in BESIDE)


def where(path: Path) -> str:
    """Return in words where the file is unreadable, "" if that cannot be seen from outside."""
    with path.open("rb") as file:
        head = file.read(len(MAGIC))
        if head.strip(b"\0") and head != MAGIC:
            return "unreadable from byte 0 (not a SQLite file)"
        file.seek(0)
        at = 0
        while page := file.read(_PAGE):
            if not page.strip(b"\0"):
                return f"unreadable from byte {at} (all zero)"
            at += len(page)
    said = _said_size(path)
    return f"unreadable from byte {at} (cut off, it had {said} bytes)" if at < said else ""


def _said_size(path: Path) -> int:
    """Return how many bytes the head says that the file has, 0 if it says nothing that holds (format: sqlite.org/fileformat2)."""
    with path.open("rb") as file:
        head = file.read(100)
    if len(head) < 100 or head[: len(MAGIC)] != MAGIC or head[24:28] != head[92:96]:
        return 0
    page = int.from_bytes(head[16:18], "big")
    return int.from_bytes(head[28:32], "big") * (1 << 16 if page == 1 else page)


def put_aside(path: Path, when: str) -> tuple[Path, Lost]:
    """Rename the file and what lies beside it to FILE.damaged-`when`; return the new name and the runs still readable in it.

    Raises:
        OSError: It could not be renamed; what was renamed before it stays so.
    """
    aside = renamed(path, BESIDE, when)
    return aside, still_readable(aside)


def still_readable(path: Path) -> Lost:
    """Return (server, profile, run id) of the runs that can be read and are not known to be done with; all, if that is lost."""
    found: dict[tuple[str, str, str], None] = {}
    with suppress(sqlite3.Error, OSError), _copy(path) as connection:
        try:
            return tuple(connection.execute(_UNDONE))
        except sqlite3.Error:
            # From both ends, since a bad page in the middle stops the reading.
            for order in ("", " ORDER BY r.run DESC"):
                with suppress(sqlite3.Error):
                    for row in connection.execute(_RUNS + order):
                        found[row] = None
    return tuple(found)


@contextmanager
def _copy(path: Path) -> Iterator[sqlite3.Connection]:
    main = path.read_bytes() if _size(path, "") <= _READABLE else b""
    wal = _beside(path, "-wal")
    data = overlaid(main, wal.read_bytes() if _size(path, "-wal") else b"")
    if len(data) < 100:
        raise sqlite3.DatabaseError("nothing to read")
    data[18:20] = b"\1\1"  # no write-ahead log: a database in memory has none
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(bytes(data))
        connection.execute("PRAGMA writable_schema = ON")  # lets SQLite open a file that is shorter than its head says
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        yield connection


def overlaid(main: bytes, wal: bytes) -> bytearray:
    """Return a database file with the committed pages of its write-ahead log in their places (format: sqlite.org/fileformat2)."""
    data = bytearray(main)
    if len(wal) < 32 or int.from_bytes(wal[:4], "big") not in _WAL_MAGIC:
        return data
    size = int.from_bytes(wal[8:12], "big")
    salts = wal[16:24]
    waiting: list[tuple[int, bytes]] = []
    for at in range(32, len(wal) - 24 - size + 1, 24 + size):
        if wal[at + 8 : at + 16] != salts:
            break  # left from before the log was begun anew
        waiting.append((int.from_bytes(wal[at : at + 4], "big"), wal[at + 24 : at + 24 + size]))
        if wal[at + 4 : at + 8] != b"\0\0\0\0":
            for number, page in waiting:
                end = number * size
                data.extend(bytes(max(0, end - len(data))))
                data[end - size : end] = page
            waiting.clear()
    return data


def _size(path: Path, end: str) -> int:
    try:
        return _beside(path, end).stat().st_size
    except FileNotFoundError:
        return 0


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)
