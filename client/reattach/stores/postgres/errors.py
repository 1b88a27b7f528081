"""PostgreSQL's errors in the seam's words, in one place. Nothing of psycopg leaves the store but what a user's own SQL raised."""

from __future__ import annotations

import psycopg
from psycopg import errors as states

from reattach.stores.base import StoreDamaged, StoreFailed, StoreLocked, StoreUnreachable
from reattach.stores.postgres.address import scrubbed

LOCK_SECONDS = 5  # how long a statement waits for another session's lock; a commit takes milliseconds


class Unanswered(psycopg.OperationalError):
    """The server said nothing for as long as we wait."""


_GONE = (
    Unanswered,
    states.AdminShutdown,
    states.CrashShutdown,
    states.CannotConnectNow,
    states.IdleInTransactionSessionTimeout,
)
_AGAIN = (states.DeadlockDetected, states.SerializationFailure, states.UniqueViolation)


def lost(connection: psycopg.Connection[object], error: BaseException) -> bool:
    """Return whether the connection is of no more use after this error."""
    return connection.closed or isinstance(error, _GONE) or str(getattr(error, "sqlstate", None) or "")[:2] == "08"


def passing(error: psycopg.Error) -> bool:
    """Return whether the same work may well succeed when it is done again: another session was faster, or in the way."""
    return isinstance(error, _AGAIN)


def translated(error: psycopg.Error, url: str, *, gone: bool = False) -> StoreFailed | StoreDamaged:
    """Return what the seam calls this error. `gone`: the connection is lost, or there is none."""
    text = told(error, url)
    match error:
        case states.LockNotAvailable():
            return StoreLocked(f"another process held it for more than {LOCK_SECONDS} s")
        case states.DataCorrupted() | states.IndexCorrupted():
            return StoreDamaged(f"unreadable ({text})")
        case states.DiskFull():
            return StoreFailed(f"no space left on device ({text})")
        case _:
            return StoreUnreachable(text) if gone else StoreFailed(text)


def told(error: BaseException, url: str) -> str:
    """Return the first line of what the driver said, which is the one for people."""
    lines = scrubbed(str(error), url).strip().splitlines()
    return lines[0] if lines else type(error).__name__
