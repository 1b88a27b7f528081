"""The journal in one SQLite file: the methods of the seam, their transactions and their locks.

Two connections: one writes, one reads, each used by one thread at a time. Every write is `BEGIN IMMEDIATE`, so that nothing is
ever decided on what another process is about to change; `synchronous=FULL`, so that what returned is on disk. What the
statements are is in `stores.tables`; how a file becomes a journal, in `opening`; what a noted mark is worth, in
`noted`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from reattach.core.messages import Mark
from reattach.stores import forks
from reattach.stores.base import (
    Busy,
    Entry,
    ForbiddenSql,
    Holder,
    Intent,
    Lease,
    LeaseGone,
    Refusal,
    RunRow,
    StoreDamaged,
    StoreFailed,
    Transaction,
    Write,
)
from reattach.stores.leases import Alive, is_alive
from reattach.stores.noted import Carried, Noted, must_be_committed, settle
from reattach.stores.sqlite import at_once, compaction
from reattach.stores.sqlite.errors import translating
from reattach.stores.sqlite.lease_rows import NUMBER, lease_row, own
from reattach.stores.sqlite.opening import open_file, roll_back, suspect
from reattach.stores.sqlite.transaction import SqliteTransaction, TurnConnection
from reattach.stores.tables import batches, places, retention, runs
from reattach.stores.tables import leases as lease_table
from reattach.stores.times import stamp


class SqliteStore:
    """A journal in a SQLite file, which several processes may share. Tables of other names in it are left alone.

    Args:
        path: The file; made at `open` if it is not there, its folder is not.
        wall: The wall clock, in seconds since 1970: times of rows and the end of leases.
        alive: Whether a lease's holder lives; tests that play several processes in one bring their own.
    """

    shared = True
    transactions_apart = False

    def __init__(
        self, path: str | os.PathLike[str], *, wall: Callable[[], float] = time.time, alive: Alive = is_alive
    ) -> None:
        self.name = os.fspath(path)
        self._path = Path(os.path.realpath(path))
        self._wall = wall
        self._alive = alive
        # Re-entrant, since a user's function inside `Transaction.call` may fork.
        self._write_lock = threading.RLock()
        self._read_lock = threading.Lock()
        self._writer: TurnConnection | None = None
        self._reader: TurnConnection | None = None
        self._noted: Noted | None = None
        self._held: dict[tuple[int, str], tuple[Lease, float]] = {}
        self._transaction: SqliteTransaction | None = None

    def open(self) -> None:
        """See `Store.open`."""
        with self._write_lock:
            if self._writer is None:
                self._writer, self._reader, marks = open_file(self._path, self._now())
                self._noted = Noted(marks)
                forks.watch(self)

    def close(self) -> None:
        """See `Store.close`."""
        if self._transaction is not None:
            self._transaction.rollback()
        if self._noted is not None:
            with suppress(StoreFailed, StoreDamaged):
                self.carry()
        with self._write_lock, self._read_lock:
            self._drop()

    # runs ---------------------------------------------------------------------------------------------------------

    def intend(self, intent: Intent) -> tuple[RunRow, bool]:
        """See `Store.intend`."""
        with self._writing() as connection:
            return runs.intend(connection, intent, self._now())

    def created(self, run: int, *, run_id: str, session_id: str | None, status: str) -> RunRow:
        """See `Store.created`."""
        with self._writing() as connection:
            return runs.created(connection, run, run_id, session_id, status, self._now())

    def forget(self, run: int) -> None:
        """See `Store.forget`."""
        with self._writing() as connection:
            runs.forget(connection, run)

    def adopt(self, server: str, profile: str, run_id: str, *, continues: str | None = None) -> RunRow:
        """See `Store.adopt`."""
        known = self.find(server, profile, run_id=run_id)
        if known is not None and (continues is None or known.continues is not None):
            return known
        with self._writing() as connection:
            return runs.adopt(connection, server, profile, run_id, continues, self._now())

    def row(self, run: int) -> RunRow:
        """See `Store.row`."""
        with self._reading() as connection:
            return runs.row(connection, run)

    def find(self, server: str, profile: str, *, key: str | None = None, run_id: str | None = None) -> RunRow | None:
        """See `Store.find`."""
        with self._reading() as connection:
            return runs.find(connection, server, profile, key=key, run_id=run_id)

    def continuing(self, server: str, profile: str, run_id: str) -> list[RunRow]:
        """See `Store.continuing`."""
        with self._reading() as connection:
            return runs.continuing(connection, server, profile, run_id)

    def rows(self, server: str | None = None, profile: str | None = None) -> list[RunRow]:
        """See `Store.rows`."""
        with self._reading() as connection:
            return runs.rows(connection, server, profile)

    def hand_out(self, run: int) -> None:
        """See `Store.hand_out`."""
        with self._writing() as connection:
            runs.change(connection, run, "handed_out", 1, self._now())

    def need(self, run: int, word: str) -> None:
        """See `Store.need`."""
        with self._writing() as connection:
            runs.change(connection, run, "needs", word, self._now())

    # events -------------------------------------------------------------------------------------------------------

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        """See `Store.commit`."""
        told = [batches.prepared(write) for write in writes]
        with self._turn() as connection:
            done = at_once.commit(connection, told, self._marks, self._now())
        if done is not None:
            settle(done)
            return [None] * len(told)
        with self._writing() as connection:
            now = self._now()
            refused = [batches.keep(connection, each, now) for each in told]
            carried = self._carry(connection, now)
        for write, refusal in zip(writes, refused, strict=True):
            if write.gap is not None and refusal is None:
                self._marks.begin_incarnation(write.run)
        settle(carried)
        return refused

    def read(self, run: int, after: int, limit: int) -> list[Entry]:
        """See `Store.read`."""
        with self._reading() as connection:
            return batches.read(connection, run, after, limit)

    def newest(self, run: int, limit: int) -> list[Entry]:
        """See `Store.newest`."""
        with self._reading() as connection:
            return batches.newest(connection, run, limit)

    def rewind(self, lease: Lease, mark: Mark) -> RunRow:
        """See `Store.rewind`."""
        with self._writing() as connection:
            own(connection, lease)
            return places.rewind(connection, lease.run, mark, self._now())

    # retention ----------------------------------------------------------------------------------------------------

    def prune(self, run: int, upto: int) -> bool:
        """See `Store.prune`."""
        with self._writing() as connection:
            return retention.prune(connection, run, upto, self._now())

    def compact(self) -> bool:
        """See `Store.compact`."""
        with self._turn() as connection:
            return compaction.compact(connection)

    # marks and leases ---------------------------------------------------------------------------------------------

    def applied(self, run: int, consumer: str) -> int:
        """See `Store.applied`."""
        with self._reading() as connection:
            row = lease_row(connection, run, consumer)
        return self._marks.applied(run, consumer, row)

    def consumers(self, run: int) -> dict[str, int]:
        """See `Store.consumers`."""
        with self._reading() as connection:
            names = lease_table.consumers(connection, run)
            rows = {name: lease_row(connection, run, name) for name in names}
        return {name: self._marks.applied(run, name, row) for name, row in rows.items()}

    def note(self, lease: Lease, position: int) -> None:
        """See `Store.note`; a mark of a lost lease, or above the committed position, never counts."""
        noted = self._noted
        if noted is not None:
            noted.note(lease, position)

    def carry(self) -> None:
        """See `Store.carry`; without a noted mark nothing is written."""
        if self._marks.waiting():
            with self._writing() as connection:
                carried = self._carry(connection, self._now())
            settle(carried)

    def mark(self, lease: Lease, position: int) -> None:
        """See `Store.mark`."""
        with self._writing() as connection:
            row = own(connection, lease)
            must_be_committed(position, row)
            lease_table.raise_mark(connection, lease, position, self._now())
        self._marks.moved(lease, position)

    def lease(self, run: int, consumer: str, holder: Holder, seconds: float) -> Lease | Busy:
        """See `Store.lease`."""
        with self._writing() as connection:
            now = self._wall()
            row = lease_row(connection, run, consumer)
            busy = lease_table.busy(row, now, self._alive)
            if busy is not None:
                return busy
            lease = lease_table.pass_on(
                connection, self._marks, row, (run, consumer), holder, now, seconds, number=NUMBER
            )
        self._marks.claim(lease)
        self._held[run, consumer] = (lease, seconds)
        return lease

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[Lease]:
        """See `Store.renew`."""
        with self._writing() as connection:
            until = stamp(self._wall() + seconds)
            lost = [lease for lease in leases if not lease_table.extend(connection, lease, until)]
        for lease in lost:
            self._let_go(lease)
        return lost

    def release(self, lease: Lease) -> None:
        """See `Store.release`; what it noted is carried first."""
        with self._writing() as connection:
            carried = self._carry(connection, self._now())
            lease_table.give_back(connection, lease)
        settle(carried)
        self._let_go(lease)

    def holder(self, run: int, consumer: str) -> Busy | None:
        """See `Store.holder`."""
        with self._reading() as connection:
            row = lease_row(connection, run, consumer)
        return lease_table.busy(row, self._wall(), self._alive)

    # the user's own transaction -----------------------------------------------------------------------------------

    def begin(self, lease: Lease, *, expected: int) -> Transaction:
        """See `Store.begin`; LeaseGone also if the mark is not at `expected`: then someone else has moved it."""
        with self._write_lock, translating():
            connection = self._free_writer()
            connection.execute("BEGIN IMMEDIATE")
            try:
                row = own(connection, lease)
                applied = self._marks.applied(lease.run, lease.consumer, row)
                if applied != expected:
                    raise LeaseGone(f"the mark is at {applied}, not at {expected}: it was moved meanwhile")
                self._transaction = SqliteTransaction(
                    connection, self._write_lock, lambda position: self._finish(connection, lease, position)
                )
            except BaseException:
                roll_back(connection)
                raise
            return self._transaction

    def changed(self) -> int:
        """See `Store.changed`."""
        with self._reading() as connection:
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            return int(version)

    # around a fork ------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """See `forks.Forked`."""
        self._write_lock.acquire()
        self._read_lock.acquire()

    def resume(self) -> None:
        """See `forks.Forked`."""
        self._read_lock.release()
        self._write_lock.release()

    def abandon(self) -> None:
        """See `forks.Forked`; calls then fail as on any store that is not open."""
        self._drop()

    # transactions -------------------------------------------------------------------------------------------------

    @contextmanager
    def _turn(self) -> Iterator[sqlite3.Connection]:
        """Have the write connection, outside of a transaction."""
        with self._write_lock, self._noticing_damage(), translating():
            yield self._free_writer()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Have the write connection in a transaction of its own, durable at the end, undone by any exception."""
        with self._turn() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                roll_back(connection)
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Have the read connection, all of it in one state of the journal."""
        with self._noticing_damage(), self._read_lock, translating():
            if self._reader is None:
                raise StoreFailed("it is not open")
            self._reader.execute("BEGIN")
            try:
                yield self._reader
            finally:
                roll_back(self._reader)

    @contextmanager
    def _noticing_damage(self) -> Iterator[None]:
        try:
            yield
        except StoreDamaged:
            suspect(self._path, self._now())
            raise

    def _free_writer(self) -> TurnConnection:
        if self._writer is None:
            raise StoreFailed("it is not open")
        if self._transaction is not None:
            raise RuntimeError("the user's transaction has the writer's turn")
        return self._writer

    def _finish(self, connection: sqlite3.Connection, lease: Lease, position: int | None) -> None:
        """End the user's transaction, authorizer off already."""
        self._transaction = None
        if position is None or not connection.in_transaction:
            roll_back(connection)
            if position is None:
                return
            raise ForbiddenSql("a statement rolled the transaction back; nothing of it was kept")
        with translating():
            try:
                must_be_committed(position, own(connection, lease))
                now = self._wall()
                lease_table.raise_mark(connection, lease, position, stamp(now))
                # Nobody could take a lease while we had the write lock, however long that was: all go on from here.
                for held, seconds in self._held.values():
                    lease_table.extend(connection, held, stamp(now + seconds))
                connection.execute("COMMIT")
            except BaseException:
                roll_back(connection)
                raise
        self._marks.moved(lease, position)

    # inside -------------------------------------------------------------------------------------------------------

    def _carry(self, connection: sqlite3.Connection, now: str) -> Carried:
        return self._marks.carry(lambda lease, position: lease_table.raise_mark(connection, lease, position, now))

    def _let_go(self, lease: Lease) -> None:
        self._marks.let_go(lease)
        if self._held.get((lease.run, lease.consumer), (None,))[0] == lease:
            del self._held[lease.run, lease.consumer]

    @property
    def _marks(self) -> Noted:
        if self._noted is None:
            raise StoreFailed("it is not open")
        return self._noted

    def _drop(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.turn = False  # a fork inside a user's transaction: the child must not keep it
                with suppress(sqlite3.Error):
                    connection.close()
        self._writer = self._reader = self._noted = self._transaction = None
        self._held = {}
        forks.forget(self)

    def _now(self) -> str:
        return stamp(self._wall())
