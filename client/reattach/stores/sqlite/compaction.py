"""Giving the room of removed rows back to the file system, in steps that hold no other process up for long.

Only pages are moved here, never content: what may be removed is decided elsewhere (`tables/retention`).

Sources
    * A file shrinks in steps only in SQLite's mode "incremental", which a file has from its beginning or gets by being rewritten
      once (sqlite.org/pragma.html#pragma_auto_vacuum); with a write-ahead log it shrinks at the checkpoint.
"""

from __future__ import annotations

import sqlite3

from reattach.stores.base import StoreFailed

STEP_PAGES = 1_024  # given back a step: 4 MiB at SQLite's usual page size
INCREMENTAL = 2
REWRITTEN_WHOLE = (
    64 << 20
)  # bytes; up to here a file of an older version is rewritten once, which takes a second or less


def compact(connection: sqlite3.Connection) -> bool:
    """Give a step's worth of free pages back; return whether there are more."""
    if _number(connection, "auto_vacuum") != INCREMENTAL:
        _rewrite(connection)
        return False
    if _number(connection, "freelist_count"):
        left = _shrunk(connection)
        if left:
            return True
    # Waits for nobody; what a reader still holds is given back by a later checkpoint.
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    return False


def _shrunk(connection: sqlite3.Connection) -> int:
    """Give back a step's worth of pages, and return how many are left."""
    # In one transaction: pages that another process frees meanwhile would look like a step that moved nothing.
    connection.execute("BEGIN IMMEDIATE")
    try:
        free = _number(connection, "freelist_count")
        connection.execute(f"PRAGMA incremental_vacuum({STEP_PAGES})").fetchall()
        left = _number(connection, "freelist_count")
        if left >= free > 0:
            # On a full disk the pragma moves nothing and says nothing.
            raise StoreFailed("the file could not be made smaller")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return left


def _rewrite(connection: sqlite3.Connection) -> None:
    """Bring a file made before version 2 of the schema into the mode that shrinks in steps, if that is quick and the file ours."""
    size = _number(connection, "page_count") * _number(connection, "page_size")
    others = connection.execute(
        r"SELECT 1 FROM sqlite_master WHERE name NOT LIKE 'reattach\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'"
    ).fetchone()
    # A user's own database keeps its own mode, and a large file nobody waits for: their free pages are used again.
    if others is None and size <= REWRITTEN_WHOLE and _number(connection, "freelist_count"):
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    (found,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(found)
