"""Users' transactions: each in a session of its own, of which some are kept for the next ones."""

from __future__ import annotations

import threading
import time

import psycopg
from psycopg.pq import TransactionStatus

from reattach.stores.base import ForbiddenSql, Lease, LeaseGone, StoreUnreachable, Transaction
from reattach.stores.noted import Noted, must_be_committed, must_own
from reattach.stores.postgres.errors import lost, told, translated
from reattach.stores.postgres.line import ANSWER, PATIENCE, Line
from reattach.stores.postgres.locks import locked
from reattach.stores.postgres.session import SETTINGS, Session
from reattach.stores.postgres.transaction import PostgresTransaction, TurnConnection
from reattach.stores.tables import leases as lease_table
from reattach.stores.times import stamp

_TAMPERED = """SELECT txid_current_if_assigned() IS NOT DISTINCT FROM ?, (
    SELECT min(c.relname) FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')
    AND c.relname LIKE 'reattach\\_%')"""


class Turns:
    """The lines of users' transactions. May be used from several threads.

    Args:
        url: The database.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._spare: list[Line] = []
        self._closed = False

    def close(self) -> None:
        """Keep no line for later, and end those that wait. Never raises."""
        with self._lock:
            self._closed = True
            spare, self._spare = self._spare, []
        for line in spare:
            line.close()

    def begin(self, lease: Lease, expected: int, marks: Noted) -> Transaction:
        """See `Store.begin`."""
        with self._lock:
            line = self._spare.pop() if self._spare else Line(self._url, TurnConnection, autocommit=False)
        try:
            return self._begun(line, lease, expected, marks)
        except BaseException:
            line.close()
            raise

    def _begun(self, line: Line, lease: Lease, expected: int, marks: Noted) -> Transaction:
        until = time.monotonic() + PATIENCE
        while True:
            session = line.session()
            try:
                with session.within(min(ANSWER, until - time.monotonic())):
                    (number,) = session.execute("SELECT txid_current()").fetchone()
                    row = must_own(lease_table.lease_row(session, lease.run, lease.consumer), lease)
                break
            except psycopg.Error as error:
                if not lost(session.connection, error) or time.monotonic() > until:
                    raise translated(error, self._url) from error
                line.drop()
        applied = marks.applied(lease.run, lease.consumer, row)
        if applied != expected:
            raise LeaseGone(f"the mark is at {applied}, not at {expected}: it was moved meanwhile")

        def finish(position: int | None) -> None:
            try:
                if position is not None:
                    self._confirm(line, session, lease, number, position)
                    marks.moved(lease, position)
            finally:
                session.roll_back()  # nothing, after a commit
                self._give_back(line)

        return PostgresTransaction(session, finish, self._away)

    def _confirm(self, line: Line, session: Session, lease: Lease, number: int, position: int) -> None:
        """Write the mark and commit."""
        until = time.monotonic() + PATIENCE
        committing = False
        if session.connection.info.transaction_status == TransactionStatus.INERROR:
            raise ForbiddenSql(
                "a statement failed, and PostgreSQL keeps nothing of a transaction after that; use a savepoint where one may fail"
            )
        try:
            session.execute("SET CONSTRAINTS ALL IMMEDIATE")
        except psycopg.Error as error:
            if lost(session.connection, error):
                raise self._away(error) from error
            raise  # what the user put off to the end is the user's to see
        try:
            with session.within(min(ANSWER, until - time.monotonic())):
                with session.gathered():
                    session.execute("RESET ROLE")  # what it set for the session is neither for us nor for the next one
                    session.execute("RESET ALL")
                    session.execute(SETTINGS)
                    found = session.execute(_TAMPERED, (number,))
                same, touched = found.fetchone()
                if not same:
                    raise ForbiddenSql(
                        "a statement ended the transaction; what came before it may be kept, without the mark"
                    )
                if touched:
                    raise ForbiddenSql(
                        f"{touched} is the journal's own; your tables may have any name that does not begin with reattach_"
                    )
                row = must_own(locked(session, lease.run, lease.consumer), lease)
                must_be_committed(position, row)
                lease_table.raise_mark(session, lease, position, stamp(line.sign(session)))
                committing = True
                session.execute("COMMIT")
        except psycopg.Error as error:
            if not lost(session.connection, error):
                raise translated(error, self._url) from error
            if not (line.kept(session, until, error, committing) and committing):
                raise self._away(error) from error

    def _away(self, error: BaseException) -> StoreUnreachable:
        return StoreUnreachable(
            f"the connection was lost; nothing of the transaction was kept: {told(error, self._url)}"
        )

    def _give_back(self, line: Line) -> None:
        with self._lock:
            if not self._closed:
                self._spare.append(line)
                return
        line.close()
