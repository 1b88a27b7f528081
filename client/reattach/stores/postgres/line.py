"""A line to the database: sessions one after another, each made when the one before was lost, and transactions that survive that.

A connection that is lost while a transaction commits leaves it open whether it was kept. So each line has a *receipt*: a row of
`reattach_meta` that every transaction writes first. Afterwards a new session waits until the old one's lock on the receipt is gone
(the old session is ended, should the server not have noticed), and what stands in the receipt then tells: kept, or not at all; what
was not kept is done again. Nobody waits longer than `PATIENCE`, nor for one answer longer than `ANSWER`; after that the journal is
found as it is, by whoever goes on.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import psycopg

from reattach.stores.base import StoreFailed, StoreUnreachable
from reattach.stores.postgres.errors import lost, passing, told, translated
from reattach.stores.postgres.session import Connection, Session

T = TypeVar("T")

PATIENCE = 20.0
"""Seconds until a call on a database that cannot be reached fails: a restart of the server takes less."""
ANSWER = 8.0
"""Seconds that a session may be silent when it is asked; then it is given up for a new one."""
_PAUSES = (0.02, 0.05, 0.1, 0.25)
_TRIES = 10  # of work that another session was in the way of
KEEP_DAYS = 30
"""Receipts of processes that died are removed after so many days."""


class Line:
    """One line, used by one thread at a time.

    Args:
        url: The database.
        kind: The connections it makes.
        autocommit: As `Session`.
    """

    def __init__(self, url: str, kind: type[Connection] = Connection, *, autocommit: bool = True) -> None:
        self._url = url
        self._kind = kind
        self._autocommit = autocommit
        self._session: Session | None = None
        self._receipt = f"receipt:{datetime.now(UTC):%Y-%m-%d}:{secrets.token_hex(8)}"
        self._number = 0

    def open(self) -> None:
        """Connect, in one try: who has never been there may have the wrong address.

        Raises:
            StoreFailed: That is not possible.
        """
        if self._session is None:
            try:
                self._session = Session(self._url, self._kind, autocommit=self._autocommit)
            except psycopg.Error as error:
                raise StoreUnreachable(told(error, self._url)) from error

    def write(self, work: Callable[[Session, float], T]) -> T:
        """Do work in a transaction of its own, durable at the return, undone by any exception.

        Args:
            work: Gets the session and the server's clock (seconds since 1970). May be done more than once, of which one is kept.

        Raises:
            StoreFailed, StoreDamaged: Nothing was kept; or, where the text says so, it is not known.
        """
        until = time.monotonic() + PATIENCE
        tries = 0
        while True:
            session = self._connected(until)
            committing = False
            try:
                with session.within(min(ANSWER, until - time.monotonic())):
                    session.execute("BEGIN")
                    result = work(session, self.sign(session))
                    committing = True
                    session.execute("COMMIT")
                return result
            except psycopg.Error as error:
                if lost(session.connection, error):
                    if self.kept(session, until, error, committing) and committing:
                        return result
                    continue
                session.roll_back()
                tries += 1
                if passing(error) and tries < _TRIES:
                    continue
                raise translated(error, self._url) from error
            except BaseException:
                session.roll_back()
                raise

    def read(self, work: Callable[[Session], T], *, whole: bool = False) -> T:
        """Read something; `whole`: all of it in one state of the journal. Done again if the connection is lost.

        Raises:
            StoreFailed, StoreDamaged: It cannot be read.
        """
        until = time.monotonic() + PATIENCE
        while True:
            session = self._connected(until)
            try:
                with session.within(min(ANSWER, until - time.monotonic())):
                    if not whole:
                        return work(session)
                    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    result = work(session)
                    session.execute("COMMIT")
                    return result
            except psycopg.Error as error:
                if not lost(session.connection, error):
                    session.roll_back()
                    raise translated(error, self._url) from error
                self.drop()
            except BaseException:
                session.roll_back()
                raise

    def session(self) -> Session:
        """Return the session for work that is not done again.

        Raises:
            StoreFailed: There is none to be had.
        """
        return self._connected(time.monotonic() + PATIENCE)

    def sign(self, session: Session) -> float:
        """Write the receipt in the open transaction; return the server's clock."""
        self._number += 1
        clock = "extract(epoch FROM clock_timestamp())::float8"
        values = (str(self._number), self._receipt)
        found = session.execute(
            f"UPDATE reattach_meta SET value = ? WHERE name = ? RETURNING {clock}", values
        ).fetchone()
        if found is None:
            found = session.execute(
                f"INSERT INTO reattach_meta (value, name) VALUES (?, ?) RETURNING {clock}", values
            ).fetchone()
        return float(found[0])

    def kept(self, before: Session, until: float, error: psycopg.Error, committing: bool) -> bool:
        """Return whether the transaction that was signed last was kept, its session being lost.

        Raises:
            StoreFailed: It is not known, the server being away.
        """
        self.drop()
        unknown = "it was lost during a commit, of which it is not known whether it was kept: " if committing else ""
        while True:
            try:
                session = self._connected(until, error)
            except StoreUnreachable as away:
                raise StoreUnreachable(f"{unknown}{away}") from error
            try:
                with session.within(min(ANSWER, until - time.monotonic())):
                    # The server may not have noticed, and hold the old transaction open with all its locks.
                    session.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ? AND backend_start::text = ?",
                        (before.pid, before.since),
                    )
                    session.execute("BEGIN")
                    found = session.execute(
                        "SELECT value FROM reattach_meta WHERE name = ? FOR UPDATE", (self._receipt,)
                    ).fetchone()
                    session.execute("COMMIT")
                return found is not None and found[0] == str(self._number)
            except psycopg.Error as again:
                if not lost(session.connection, again):
                    session.roll_back()
                    raise StoreFailed(f"{unknown}{told(again, self._url)}") from again
                self.drop()

    def drop(self) -> None:
        """Let go of the session."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def abandon(self) -> Session | None:
        """Let go of the session without closing it: it is the parent's. Return it, to be kept from being collected."""
        session, self._session = self._session, None
        return session

    def close(self) -> None:
        """Take the receipt back and end the session. Never raises."""
        session = self._session
        if session is not None and not session.connection.closed:
            try:
                with session.within(1.0):
                    session.roll_back()
                    session.execute("DELETE FROM reattach_meta WHERE name = ?", (self._receipt,))
                    if not self._autocommit:
                        session.execute("COMMIT")
            except psycopg.Error:
                pass  # it is removed after some days
        self.drop()

    def _connected(self, until: float, cause: psycopg.Error | None = None) -> Session:
        """Return the session, made anew where it was lost."""
        if self._session is not None and not self._session.connection.closed:
            return self._session
        pauses = iter(_PAUSES)
        error = cause
        while True:
            left = until - time.monotonic()
            if error is not None and left <= 0:
                raise StoreUnreachable(told(error, self._url)) from error
            try:
                self._session = Session(self._url, self._kind, autocommit=self._autocommit)
                return self._session
            except psycopg.Error as refused:
                error = refused
            time.sleep(min(next(pauses, _PAUSES[-1]), max(left, 0.0)))
