"""Opening the file: new, ours, somebody's own database, of another schema, or damaged.

A damaged file is put aside and named, never repaired and never opened again by accident; a newer one is not touched. One
process at a time opens in a folder, see `files.alone_in`.
"""

from __future__ import annotations

import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from reattach.stores.base import StoreDamaged, StoreFailed, StoreForeign
from reattach.stores.marks import MarksFile
from reattach.stores.sqlite import at_once, damage, files, schema
from reattach.stores.sqlite.errors import translating
from reattach.stores.sqlite.transaction import TurnConnection


class Opened(NamedTuple):
    """An open journal file: a connection that writes, one that reads, and the file of marks."""

    writer: TurnConnection
    reader: TurnConnection
    marks: MarksFile


def open_file(path: Path, now: str) -> Opened:
    """Open or make the journal at `path`; `now` is the time in the name of a file that is put aside.

    Raises:
        StoreDamaged: It was unreadable and is put aside. Without `moved_to`: it can be read, but its schema is no number.
        StoreForeign: It never was a journal, and is as it was.
        StoreNewer: It is of a newer schema, and is as it was.
        StoreFailed: It cannot be made, read or written.
    """
    if not path.parent.is_dir():
        raise StoreFailed(f"its folder {str(path.parent)!r} does not exist")
    with translating():
        odd = path.exists() and not path.is_file()
    if odd:
        raise StoreFailed("it is no regular file")  # opening a pipe would wait for its other end, for ever
    with files.alone_in(path.parent):
        with translating():
            empty = damage.lost_before_opening(path)
            foreign = path.exists() and damage.never_was_one(path)
        if foreign:
            raise StoreForeign("a file of another kind, no journal")
        if empty:
            _put_aside(path, empty, now)
        with translating():
            files.make(path)
        try:
            return _connected(path)
        except StoreDamaged as error:
            if not isinstance(error.__cause__, sqlite3.Error):
                raise  # our tables can be read, only what they say cannot
            with translating():
                found = damage.where(path) or error.detail
            _put_aside(path, found, now)


def suspect(path: Path, now: str) -> None:
    """Leave word that a page turned out bad, for the next opening: a large file is not read whole at every start."""
    with suppress(sqlite3.Error):
        connection = files.connect(path)
        try:
            connection.execute("INSERT OR REPLACE INTO reattach_meta VALUES ('suspect', ?)", (now,))
        finally:
            connection.close()


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo the open transaction, if there is one. Never raises."""
    # A full disk or a bad page may have rolled back already; what cannot be rolled back now is at the next opening.
    if connection.in_transaction:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def _connected(path: Path) -> Opened:
    with translating():
        writer = files.connect(path)
        try:
            if schema.version_of(writer):
                suspected = writer.execute("SELECT 1 FROM reattach_meta WHERE name = 'suspect'").fetchone() is not None
                damage.check(writer, path, suspected=suspected)
            files.shrink_in_steps(writer)
            files.use_wal(writer)
            writer.execute("BEGIN IMMEDIATE")
            journal = schema.migrate(writer)
            writer.execute("DELETE FROM reattach_meta WHERE name = 'suspect'")
            mode = stat.S_IMODE(path.stat().st_mode)
            marks = MarksFile(path.with_name(path.name + "-marks"), journal, mode)
            writer.execute("COMMIT")
            at_once.prepare(writer)
            return Opened(writer, files.connect(path, reading=True), marks)
        except BaseException:
            roll_back(writer)
            writer.close()
            raise


def _put_aside(path: Path, detail: str, now: str) -> NoReturn:
    with translating():
        aside, lost = damage.put_aside(path, now)
    raise StoreDamaged(detail, str(aside), lost)
