"""The journal in a PostgreSQL database: the methods of the seam, and which rows they lock.

One line writes, one reads, each used by one thread at a time; each user's transaction has one of its own. Two processes never
decide on what the other is changing: what belongs to a run is locked in one order, run rows before lease rows, each by number. A
lease token is only looked at under the lock of its row, which who takes the lease needs as well. The clock is the server's. What
the statements are is in `stores.tables`; how a lost connection is survived, in `line`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from reattach.core.messages import Mark
from reattach.stores import forks
from reattach.stores.base import (
    Busy,
    Entry,
    Holder,
    Intent,
    Lease,
    Refusal,
    RunRow,
    StoreDamaged,
    StoreFailed,
    Transaction,
    Write,
)
from reattach.stores.check import refusal
from reattach.stores.leases import Alive, is_alive_of_many
from reattach.stores.marks import PrivateMarks
from reattach.stores.noted import Carried, LeaseRow, Noted, must_be_committed, must_own, settle
from reattach.stores.postgres import schema
from reattach.stores.postgres.address import shown
from reattach.stores.postgres.errors import lost, told, translated
from reattach.stores.postgres.line import PATIENCE, Line
from reattach.stores.postgres.locks import lock_leases, lock_runs, locked
from reattach.stores.postgres.session import Session
from reattach.stores.postgres.turns import Turns
from reattach.stores.tables import batches, places, retention, runs
from reattach.stores.tables import leases as lease_table
from reattach.stores.times import stamp

T = TypeVar("T")

_NOW = "SELECT extract(epoch FROM clock_timestamp())::float8"
_inherited: list[object] = []
"""The parent's sessions, in a fork of it: never touched and never collected, which would end them."""


class PostgresStore:
    """A journal in a PostgreSQL database, which many hosts may share. Tables of other names in it are left alone.

    Args:
        url: The address, "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"; libpq's parameters may follow.
        alive: Whether a lease's holder lives; tests that play several hosts bring their own.
    """

    shared = True
    transactions_apart = True

    def __init__(self, url: str, *, alive: Alive = is_alive_of_many) -> None:
        self.name = shown(url)
        self._url = url
        self._alive = alive
        try:
            conninfo_to_dict(url)
        except psycopg.Error as error:
            raise ValueError(f"journal: {told(error, url)}") from None
        self._opened = False
        self._seen = ""
        self._changes = 0
        self._noted: Noted | None = None
        self._begin_anew()

    def open(self) -> None:
        """See `Store.open`."""
        with self._write_lock:
            if not self._opened:
                for line in (self._writer, self._reader):
                    line.open()
                self._make()
                self._noted = Noted(PrivateMarks())
                self._turns = Turns(self._url)
                self._opened = True
                forks.watch(self)

    def close(self) -> None:
        """See `Store.close`."""
        if self._opened:
            with suppress(StoreFailed, StoreDamaged):
                self.carry()
        with self._write_lock, self._read_lock:
            self._opened = False
            self._noted = None
            self._turns.close()
            for line in (self._writer, self._reader):
                line.close()
            forks.forget(self)

    # runs ---------------------------------------------------------------------------------------------------------

    def intend(self, intent: Intent) -> tuple[RunRow, bool]:
        """See `Store.intend`."""

        def work(session: Session, now: float) -> tuple[RunRow, bool]:
            if intent.key is None:  # no unique key keeps two of these apart
                session.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (str(intent.continues),))
            return runs.intend(session, intent, stamp(now))

        return self._write(work)

    def created(self, run: int, *, run_id: str, session_id: str | None, status: str) -> RunRow:
        """See `Store.created`."""

        def work(session: Session, now: float) -> RunRow:
            session.execute(
                """SELECT 1 FROM reattach_runs WHERE run = ?1 OR run = (
                    SELECT b.run FROM reattach_runs AS a JOIN reattach_runs AS b USING (server, profile)
                    WHERE a.run = ?1 AND b.run_id = ?2) ORDER BY run FOR UPDATE""",
                (run, run_id),
            )
            return runs.created(session, run, run_id, session_id, status, stamp(now))

        return self._write(work)

    def forget(self, run: int) -> None:
        """See `Store.forget`."""

        def work(session: Session, now: float) -> None:
            lock_runs(session, [run])
            runs.forget(session, run)

        self._write(work)

    def adopt(self, server: str, profile: str, run_id: str, *, continues: str | None = None) -> RunRow:
        """See `Store.adopt`."""
        known = self.find(server, profile, run_id=run_id)
        if known is not None and (continues is None or known.continues is not None):
            return known
        return self._write(lambda session, now: runs.adopt(session, server, profile, run_id, continues, stamp(now)))

    def row(self, run: int) -> RunRow:
        """See `Store.row`."""
        return self._read(lambda session: runs.row(session, run))

    def find(self, server: str, profile: str, *, key: str | None = None, run_id: str | None = None) -> RunRow | None:
        """See `Store.find`."""
        return self._read(lambda session: runs.find(session, server, profile, key=key, run_id=run_id))

    def continuing(self, server: str, profile: str, run_id: str) -> list[RunRow]:
        """See `Store.continuing`."""
        return self._read(lambda session: runs.continuing(session, server, profile, run_id))

    def rows(self, server: str | None = None, profile: str | None = None) -> list[RunRow]:
        """See `Store.rows`."""
        return self._read(lambda session: runs.rows(session, server, profile))

    def hand_out(self, run: int) -> None:
        """See `Store.hand_out`."""
        self._write(lambda session, now: runs.change(session, run, "handed_out", 1, stamp(now)))

    def need(self, run: int, word: str) -> None:
        """See `Store.need`."""
        self._write(lambda session, now: runs.change(session, run, "needs", word, stamp(now)))

    # events -------------------------------------------------------------------------------------------------------

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        """See `Store.commit`."""
        prepared = [batches.prepared(write) for write in writes]
        numbers = sorted({write.run for write in writes})

        def work(session: Session, now: float) -> tuple[list[Refusal | None], Carried]:
            with session.gathered():
                lock_runs(session, numbers)
                lock_leases(session, [(run, "") for run in numbers])
                found = session.execute(f"{batches.STANDING} WHERE run = ANY(?::bigint[])", (numbers,))
            standing = {run: (position, token) for run, position, token in found.fetchall()}
            refused: list[Refusal | None] = []
            with session.gathered():
                for each in prepared:
                    position, token = standing.get(each.write.run, (-1, None))
                    refused.append(refusal(each.write, position, token))
                    if refused[-1] is None:
                        batches.put(session, each, stamp(now))
                        standing[each.write.run] = (each.write.mark.position, token)
                carried = self._carry(session, now)
            return refused, carried

        refused, carried = self._write(work)
        for write, refusal_ in zip(writes, refused, strict=True):
            if write.gap is not None and refusal_ is None:
                self._marks.begin_incarnation(write.run)
        settle(carried)
        return refused

    def read(self, run: int, after: int, limit: int) -> list[Entry]:
        """See `Store.read`."""
        return self._read(lambda session: batches.read(session, run, after, limit), whole=True)

    def newest(self, run: int, limit: int) -> list[Entry]:
        """See `Store.newest`."""
        return self._read(lambda session: batches.newest(session, run, limit), whole=True)

    def rewind(self, lease: Lease, mark: Mark) -> RunRow:
        """See `Store.rewind`."""

        def work(session: Session, now: float) -> RunRow:
            lock_runs(session, [lease.run])
            must_own(locked(session, lease.run, lease.consumer), lease)
            return places.rewind(session, lease.run, mark, stamp(now))

        return self._write(work)

    # retention ----------------------------------------------------------------------------------------------------

    def prune(self, run: int, upto: int) -> bool:
        """See `Store.prune`."""

        def work(session: Session, now: float) -> bool:
            lock_runs(session, [run])
            return retention.prune(session, run, upto, stamp(now))

        return self._write(work)

    def compact(self) -> bool:
        """Do nothing: the server gives room back by itself (autovacuum)."""
        return False

    # marks and leases ---------------------------------------------------------------------------------------------

    def applied(self, run: int, consumer: str) -> int:
        """See `Store.applied`; what another process noted counts once it was carried."""
        row = self._read(lambda session: lease_table.lease_row(session, run, consumer))
        return self._marks.applied(run, consumer, row)

    def consumers(self, run: int) -> dict[str, int]:
        """See `Store.consumers`; what another process noted counts once it was carried."""

        def work(session: Session) -> dict[str, LeaseRow | None]:
            names = lease_table.consumers(session, run)
            return {name: lease_table.lease_row(session, run, name) for name in names}

        rows = self._read(work, whole=True)
        return {name: self._marks.applied(run, name, row) for name, row in rows.items()}

    def note(self, lease: Lease, position: int) -> None:
        """See `Store.note`; it survives a kill once it was carried, a second later at the most."""
        noted = self._noted
        if noted is not None:
            noted.note(lease, position)

    def carry(self) -> None:
        """See `Store.carry`; without a noted mark nothing is written."""
        if self._marks.waiting():
            settle(self._write(self._carry_gathered))

    def mark(self, lease: Lease, position: int) -> None:
        """See `Store.mark`."""

        def work(session: Session, now: float) -> None:
            row = must_own(locked(session, lease.run, lease.consumer), lease)
            must_be_committed(position, row)
            lease_table.raise_mark(session, lease, position, stamp(now))

        self._write(work)
        self._marks.moved(lease, position)

    def lease(self, run: int, consumer: str, holder: Holder, seconds: float) -> Lease | Busy:
        """See `Store.lease`; the time is the server's, so that no host's clock matters."""

        def work(session: Session, now: float) -> Lease | Busy:
            lock_runs(session, [run])  # also where there is no lease yet: two must not both take the first
            row = locked(session, run, consumer)
            busy = lease_table.busy(row, now, self._alive)
            if busy is not None:
                return busy
            return lease_table.pass_on(session, self._marks, row, (run, consumer), holder, now, seconds)

        lease = self._write(work)
        if isinstance(lease, Lease):
            self._marks.claim(lease)
        return lease

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[Lease]:
        """See `Store.renew`."""

        def work(session: Session, now: float) -> set[Lease]:
            columns = [list(column) for column in zip(*leases, strict=True)]
            with session.gathered():
                lock_leases(session, [(lease.run, lease.consumer) for lease in leases])
                found = session.execute(
                    """UPDATE reattach_leases AS l SET expires_at = ?
                    FROM unnest(?::bigint[], ?::text[], ?::bigint[]) AS h (run, consumer, token)
                    WHERE l.run = h.run AND l.consumer = h.consumer AND l.token = h.token AND l.holder IS NOT NULL
                    RETURNING l.run, l.consumer, l.token""",
                    (stamp(now + seconds), *columns),
                )
            return {Lease(*each) for each in found.fetchall()}

        kept = self._write(work) if leases else set()
        gone = [lease for lease in leases if lease not in kept]
        for lease in gone:
            self._marks.let_go(lease)
        return gone

    def release(self, lease: Lease) -> None:
        """See `Store.release`; what it noted is carried first."""

        def work(session: Session, now: float) -> Carried:
            carried = self._carry_gathered(session, now)
            lease_table.give_back(session, lease)
            return carried

        settle(self._write(work))
        self._marks.let_go(lease)

    def holder(self, run: int, consumer: str) -> Busy | None:
        """See `Store.holder`."""

        def work(session: Session) -> tuple[LeaseRow | None, float]:
            (now,) = session.execute(_NOW).fetchone()
            return lease_table.lease_row(session, run, consumer), now

        return lease_table.busy(*self._read(work), self._alive)

    # the user's own transaction -----------------------------------------------------------------------------------

    def begin(self, lease: Lease, *, expected: int) -> Transaction:
        """See `Store.begin`; LeaseGone also if the mark is not at `expected`: then someone else has moved it.

        Nothing of the journal is locked before the end, where the token is looked at again.
        """
        return self._turns.begin(lease, expected, self._marks)

    def changed(self) -> int:
        """See `Store.changed`: the server's list of transactions under way tells; also of others in its databases."""
        (seen,) = self._read(lambda session: session.execute("SELECT txid_current_snapshot()::text").fetchone())
        with self._look_lock:
            if seen != self._seen:
                self._seen = seen
                self._changes += 1
            return self._changes

    # around a fork ------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """See `forks.Forked`: nothing needs to stand still, the child uses nothing of it."""

    def resume(self) -> None:
        """See `forks.Forked`."""

    def abandon(self) -> None:
        """See `forks.Forked`; calls then fail as on any store that is not open."""
        _inherited.extend([self._writer.abandon(), self._reader.abandon(), self._turns])
        self._begin_anew()
        self._opened = False
        self._noted = None

    # inside -------------------------------------------------------------------------------------------------------

    def _begin_anew(self) -> None:
        """Have locks that nobody holds, and lines without a session."""
        self._write_lock = threading.RLock()
        self._read_lock = threading.Lock()
        self._look_lock = threading.Lock()
        self._writer = Line(self._url)
        self._reader = Line(self._url)
        self._turns = Turns(self._url)

    def _make(self) -> None:
        """Make or migrate the tables: before that there is no receipt to write."""
        session = self._writer.session()
        try:
            with session.within(6 * PATIENCE):
                session.execute("BEGIN")
                schema.migrate(session)
                session.execute("COMMIT")
        except psycopg.Error as error:
            gone = lost(session.connection, error)
            raise translated(error, self._url, gone=gone) from error
        finally:
            session.roll_back()

    def _write(self, work: Callable[[Session, float], T]) -> T:
        with self._write_lock:
            self._check_open()
            return self._writer.write(work)

    def _read(self, work: Callable[[Session], T], *, whole: bool = False) -> T:
        with self._read_lock:
            self._check_open()
            return self._reader.read(work, whole=whole)

    def _check_open(self) -> None:
        if not self._opened:
            raise StoreFailed("it is not open")

    @property
    def _marks(self) -> Noted:
        if self._noted is None:
            raise StoreFailed("it is not open")
        return self._noted

    def _carry(self, session: Session, now: float) -> Carried:
        def raise_mark(lease: Lease, position: int) -> None:
            lock_leases(session, [(lease.run, lease.consumer)])
            lease_table.raise_mark(session, lease, position, stamp(now))

        return self._marks.carry(raise_mark)

    def _carry_gathered(self, session: Session, now: float) -> Carried:
        with session.gathered():
            return self._carry(session, now)
