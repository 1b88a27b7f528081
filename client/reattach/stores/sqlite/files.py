"""The journal's file on disk: made with mode 0600, opened as a connection, and one opener at a time in its folder."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reattach.stores.base import StoreFailed, StoreLocked
from reattach.stores.sqlite.errors import BUSY_SECONDS
from reattach.stores.sqlite.transaction import TurnConnection

MODE = 0o600  # prompts and answers are in it


def make(path: Path) -> None:
    """Make the file, empty, unless it is there; the umask cannot widen or narrow its mode. SQLite gives -wal and -shm the same.

    Raises:
        StoreFailed: Its folder does not exist, or it cannot be made.
    """
    if not path.parent.is_dir():
        raise StoreFailed(f"its folder {str(path.parent)!r} does not exist")
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, MODE)
    except FileExistsError:
        return
    try:
        os.chmod(path, MODE)
    finally:
        os.close(handle)


def connect(path: Path, *, reading: bool = False) -> TurnConnection:
    """Return a connection that any thread may use, one at a time; it begins no transaction by itself."""
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=TurnConnection
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        # Nothing of an open transaction is in the log's index, which a forked child shares and rolls back in.
        connection.execute("PRAGMA cache_spill = OFF")
        if reading:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def shrink_in_steps(connection: sqlite3.Connection) -> None:
    """Let a file that is still empty be one that can give back room in steps; any other stays as it is."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    if not pages:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")


def use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log, unless it has one.

    Raises:
        StoreFailed: This file system cannot have one.
    """
    # SQLite does not wait with its busy time while it changes the mode.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise StoreFailed(f"no write-ahead log is possible here (journal mode {mode!r}); use a local disk")
        return


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Be the only process that opens a journal in this folder, where the system has such locks.

    Two openers that both find a damaged file would else put aside the new one of the other.

    Raises:
        StoreLocked: Another process has been opening for longer than the store waits.
    """
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield  # no such locks, or a folder that may not be listed: opening says itself what is wrong
        return
    try:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    break  # a file system without such locks
                if time.monotonic() > deadline:
                    raise StoreLocked(f"another process has been opening it for more than {BUSY_SECONDS:g} s") from None
            time.sleep(0.005)
        yield
    finally:
        with suppress(OSError):
            os.close(handle)
