"""SQLite's errors in the seam's words, in one place. Nothing of `sqlite3` leaves the store but what a user's own SQL raised."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from reattach.stores.base import StoreDamaged, StoreFailed, StoreLocked

BUSY_SECONDS = 10.0  # how long a write waits for another process's; a commit takes milliseconds

_WORDS = {
    sqlite3.SQLITE_FULL: "no space left on device",
    sqlite3.SQLITE_IOERR: "input/output error",
    sqlite3.SQLITE_READONLY: "it cannot be written, only read",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "permission denied",
    sqlite3.SQLITE_NOMEM: "out of memory",
}


def translated(error: sqlite3.Error) -> Exception:
    """Return what the seam calls this error."""
    code = error.sqlite_errorcode if isinstance(getattr(error, "sqlite_errorcode", None), int) else sqlite3.SQLITE_ERROR
    match code & 0xFF:  # the rest tells where it happened, and is in the name
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreLocked(f"another process held it for more than {BUSY_SECONDS:g} s")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreDamaged(f"unreadable ({error})")
        case kind if kind in _WORDS:
            return StoreFailed(f"{_WORDS[kind]} ({error.sqlite_errorname})")
        case _:
            return StoreFailed(str(error))


@contextmanager
def translating() -> Iterator[None]:
    """Raise what is inside in the seam's words. Misuse of the driver passes: it is a bug of ours."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise
    except sqlite3.Error as error:
        raise translated(error) from error
    except OSError as error:
        raise StoreFailed(error.strerror or str(error)) from error
