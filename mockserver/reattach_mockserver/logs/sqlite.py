# ruff: noqa: D102 (the methods are documented once, in the seam)
"""A log in one SQLite file: what was answered survives `kill -9` and a power cut.

WAL with `synchronous=FULL`: a commit is on disk before it is visible to a reader, so a read can show nothing that a crash
would take back. One thread writes (`writer.py`); reads go over a connection of the event loop's thread and see the last
commit. The file belongs to one process at a time: a lock beside it (`FILE.lock`) is held for as long as it is open, so
two engines never drive the same runs, and is freed by the kernel when a process dies.

The law is `base.py`'s. Checked by tests/contracts/test_event_logs.py and tests/mockserver/test_sqlite_log.py.
"""

import fcntl
import os
import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from reattach_mockserver.event import SETTLED, Entry, Stored
from reattach_mockserver.logs.advance import advance, pinned, renewed, trimmed
from reattach_mockserver.logs.base import (
    Answers,
    Base,
    Claim,
    ClaimLost,
    Counts,
    Durability,
    Effect,
    Listener,
    LogError,
    LogUnavailable,
    OperationRecord,
    RunRecord,
    RunSettled,
    SessionBusy,
    SessionRecord,
    TooManyRuns,
    WriterLost,
)
from reattach_mockserver.logs.pause import answered, resolved
from reattach_mockserver.logs.tables import (
    ACTIVE,
    CLAIM,
    COMMIT,
    EVENTS,
    INSERT_RUN,
    PLACES,
    RUN,
    SETTLED_WORDS,
    claim_of,
    counts_of,
    effects_of,
    events_of,
    execute,
    insert_events,
    known_events,
    number_of,
    one_run,
    operation_of,
    prepare,
    run_by_key,
    run_of,
    run_values,
    time_of,
    update_run,
)
from reattach_mockserver.logs.writer import Writer


class SqliteLog:
    """See the module; see `base.EventLog` for what the methods promise."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: int | None = None
        self._writer: Writer
        self._reader: sqlite3.Connection

    @property
    def name(self) -> str:
        return str(self._path)

    @property
    def durability(self) -> Durability:
        return "power"

    def listen(self, listener: Listener) -> None:
        """Nobody else has it: see the lock."""

    async def open(self) -> None:
        self._take_lock()
        try:
            connection = self._connect()
            try:
                prepare(connection, self._path)
            finally:
                connection.close()
            self._reader = self._connect()
        except sqlite3.Error as error:
            self._free_lock()
            raise LogUnavailable(f"{self._path} cannot be opened ({error})") from error
        except LogError:
            self._free_lock()
            raise
        self._writer = Writer(self._connect)

    async def close(self) -> None:
        await self._writer.close()
        self._reader.close()
        self._free_lock()

    def _connect(self) -> sqlite3.Connection:
        # Autocommit: transactions begin and end where the writer says so. One thread at a time uses a connection, but
        # it need not be the one that opened it.
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=5.0)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _take_lock(self) -> None:
        # Beside the file, not in it: closing any descriptor of a database would drop SQLite's own locks on it.
        path = self._path.with_name(self._path.name + ".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LogUnavailable(f"{path} cannot be opened ({error.strerror})") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise LogUnavailable(f"{self._path} is being served by process {holder}; end that one first") from error
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._lock = descriptor

    def _free_lock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # Writing

    async def create(
        self,
        run: RunRecord,
        entries: Sequence[Entry],
        *,
        runs_limit: int | None = None,
        answers: Answers | None = None,
    ) -> tuple[RunRecord, bool]:
        def work(connection: sqlite3.Connection) -> tuple[RunRecord, bool]:
            known = run_by_key(connection, run.principal, run.key)
            if known is not None:
                return known, False
            paused = None
            if answers is not None:
                before = run_of(connection, run.continues or "")
                paused = answered(before, run.id, answers)
                if paused is None:
                    other = (run.principal, run.key, run.digest, before.continued_by or "")
                    execute(connection, "INSERT INTO other_keys VALUES (?, ?, ?, ?)", *other)
                    made = run_of(connection, before.continued_by or "")
                    return replace(made, key=run.key, digest=run.digest), False
            place = (run.principal, run.session_id)
            busy = one_run(
                connection, f"{RUN} WHERE principal = ? AND session_id = ? AND status NOT IN ({SETTLED_WORDS})", place
            )
            if busy is not None:
                raise SessionBusy(busy.id)
            if runs_limit is not None and number_of(connection, ACTIVE, (run.principal,)) >= runs_limit:
                raise TooManyRuns(run.principal)
            if paused is not None:
                update_run(connection, paused)
            connection.execute(
                "UPDATE runs SET resolution = 'lapsed', resolved_at = ? WHERE principal = ? AND session_id = ?"
                " AND status = 'requires_action' AND resolution IS NULL",
                (entries[0].at, *place),
            )
            number = number_of(connection, "SELECT coalesce(max(number), 0) + 1 FROM runs")
            record, _, new = advance(replace(run, number=number), run.writer, entries, {}, None)
            connection.execute(INSERT_RUN, run_values(record))
            connection.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?)"
                " ON CONFLICT (principal, id) DO UPDATE SET last_run_id = excluded.last_run_id",
                (*place, run.created_at, run.id),
            )
            insert_events(connection, record, new)
            return record, True

        return await self._writer.do(work)

    async def append(
        self, run_id: str, writer: int, entries: Sequence[Entry], *, keep: int | None = None
    ) -> tuple[RunRecord, tuple[Stored, ...]]:
        def work(connection: sqlite3.Connection) -> tuple[RunRecord, tuple[Stored, ...]]:
            run = run_of(connection, run_id)
            record, stored, new = advance(run, writer, entries, known_events(connection, run, entries), keep)
            insert_events(connection, record, new)
            update_run(connection, record)
            return record, stored

        return await self._writer.do(work)

    async def take_over(self, run_id: str, writer: int | None = None) -> RunRecord:
        def taken(run: RunRecord) -> RunRecord:
            if writer not in (None, run.writer):
                raise WriterLost(run_id)
            return replace(run, writer=run.writer + 1)

        return await self._change(run_id, taken)

    async def orphans(self, limit: int | None = None) -> tuple[RunRecord, ...]:
        return (await self.unfinished())[:limit]

    async def owned(self) -> tuple[RunRecord, ...]:
        return await self.unfinished()

    async def ask_cancel(self, run_id: str, reason: str) -> RunRecord:
        def asked(run: RunRecord) -> RunRecord:
            over = run.status in SETTLED or run.cancel_reason is not None
            return run if over else replace(run, cancel_reason=reason)

        return await self._change(run_id, asked)

    async def resolve(self, run_id: str, resolution: str, at: int) -> RunRecord:
        return await self._change(run_id, lambda run: resolved(run, resolution, at))

    async def trim(self, run_id: str, first: int, at: int) -> RunRecord:
        return await self._change(run_id, lambda run: trimmed(run, first, at))

    async def pin(self, run_id: str, sequence: int, at: int, until: int) -> RunRecord:
        return await self._change(run_id, lambda run: pinned(run, sequence, at, until))

    async def _change(self, run_id: str, change: Any) -> RunRecord:
        def work(connection: sqlite3.Connection) -> RunRecord:
            run = run_of(connection, run_id)
            changed: RunRecord = change(run)
            if changed != run:
                update_run(connection, changed)
            return changed

        return await self._writer.do(work)

    async def compact(self, run_id: str, writer: int, done: int, base: Base) -> None:
        """Keeps everything."""

    async def base(self, run_id: str) -> Base | None:
        return None

    async def renew(self, run_id: str, keep: int | None = None) -> RunRecord:
        def work(connection: sqlite3.Connection) -> RunRecord:
            run = run_of(connection, run_id)
            last, last_time = None, run.last_time
            if keep is not None and run.answers is None:
                last = events_of(connection, run, keep - 1, 1)[0]
                last_time = time_of(last)
                low, high = run.number * PLACES + keep, (run.number + 1) * PLACES
                connection.execute("DELETE FROM events WHERE place > ? AND place < ?", (low, high))
            record = renewed(run, last, last_time)
            update_run(connection, record)
            return record

        return await self._writer.do(work)

    async def mark(self, run_id: str, step: str) -> None:
        await self._writer.do(
            lambda connection: execute(connection, "INSERT OR IGNORE INTO marks VALUES (?, ?)", run_id, step)
        )

    async def claim(self, run_id: str, writer: int, operation_id: str) -> Claim:
        def work(connection: sqlite3.Connection) -> Claim:
            run = run_of(connection, run_id)
            if writer != run.writer:
                raise WriterLost(run_id)
            if run.status in SETTLED:
                raise RunSettled(run_id)
            done = effects_of(connection, "run_id = ? AND operation_id = ?", (run_id, operation_id))
            if not done:
                execute(connection, CLAIM, run_id, operation_id)
            return Claim(operation_id, claim_of(connection, run_id, operation_id), done[0] if done else None)

        return await self._writer.do(work)

    async def perform(self, effect: Effect, *, claim: int = 0) -> Effect:
        def work(connection: sqlite3.Connection) -> Effect:
            if claim != claim_of(connection, effect.run_id, effect.operation_id):
                raise ClaimLost(effect.operation_id)
            connection.execute(
                "INSERT INTO effects VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (run_id, operation_id) DO UPDATE SET attempts = attempts + 1",
                astuple(effect),
            )
            done = effects_of(connection, "run_id = ? AND operation_id = ?", (effect.run_id, effect.operation_id))[0]
            row = (done.run_id, done.operation_id, done.tool, done.reversible, done.result)
            connection.execute(COMMIT, (run_of(connection, done.run_id).principal, *row))
            return done

        return await self._writer.do(work)

    async def revoke(self, token: str) -> None:
        await self._writer.do(lambda connection: execute(connection, "INSERT OR IGNORE INTO revoked VALUES (?)", token))

    # Reading

    async def run(self, run_id: str) -> RunRecord | None:
        return one_run(self._reader, f"{RUN} WHERE id = ?", (run_id,))

    async def by_key(self, principal: str, key: str) -> RunRecord | None:
        return run_by_key(self._reader, principal, key)

    async def read(self, run_id: str, after: int, limit: int, max_bytes: int) -> tuple[Stored, ...]:
        page: list[Stored] = []
        low = self._number(run_id) * PLACES
        rows = self._reader.execute(EVENTS, (low + after, low + PLACES, limit))
        for place, *rest in rows:
            event = Stored(place - low, rest[0], rest[1], bool(rest[2]), rest[3])
            max_bytes -= len(event.body)
            if page and max_bytes < 0:
                break
            page.append(event)
        rows.close()
        return tuple(page)

    async def event_id(self, run_id: str, sequence: int) -> str | None:
        place = self._number(run_id) * PLACES + sequence
        row = self._reader.execute("SELECT id FROM events WHERE place = ?", (place,)).fetchone()
        return None if row is None else row[0]

    async def first_since(self, run_id: str, at: int) -> int:
        run = run_of(self._reader, run_id)
        low, high = 1, run.last_sequence + 1
        while low < high:
            middle = (low + high) // 2
            place = run.number * PLACES + middle
            appended = number_of(self._reader, "SELECT at FROM events WHERE place = ?", (place,))
            low, high = (middle + 1, high) if appended < at else (low, middle)
        return low

    def _number(self, run_id: str) -> int:
        return number_of(self._reader, "SELECT number FROM runs WHERE id = ?", (run_id,))

    async def session(self, principal: str, session_id: str) -> SessionRecord | None:
        row = self._reader.execute(
            "SELECT principal, id, created_at, last_run_id FROM sessions WHERE principal = ? AND id = ?",
            (principal, session_id),
        ).fetchone()
        return None if row is None else SessionRecord(*row)

    async def session_runs(self, principal: str, session_id: str, after: int, limit: int) -> tuple[RunRecord, ...]:
        rows = self._reader.execute(
            f"{RUN} WHERE principal = ? AND session_id = ? AND number > ? ORDER BY number LIMIT ?",
            (principal, session_id, after, limit),
        )
        return tuple(RunRecord(*row) for row in rows)

    async def runs(self, after: int, limit: int) -> tuple[RunRecord, ...]:
        rows = self._reader.execute(f"{RUN} WHERE number > ? ORDER BY number LIMIT ?", (after, limit))
        return tuple(RunRecord(*row) for row in rows)

    async def unfinished(self, principal: str | None = None) -> tuple[RunRecord, ...]:
        mine = "" if principal is None else " AND principal = ?"
        rows = self._reader.execute(
            f"{RUN} WHERE status NOT IN ({SETTLED_WORDS}){mine} ORDER BY number",
            () if principal is None else (principal,),
        )
        return tuple(RunRecord(*row) for row in rows)

    async def busy(self, principal: str) -> int:
        return number_of(self._reader, ACTIVE, (principal,))

    async def steps(self, run_id: str) -> frozenset[str]:
        low = self._number(run_id) * PLACES
        rows = self._reader.execute(
            "SELECT step FROM events WHERE place > ? AND place < ? UNION ALL SELECT step FROM marks WHERE run_id = ?",
            (low, low + PLACES, run_id),
        )
        return frozenset(row[0] for row in rows)

    async def effects(self, run_id: str) -> tuple[Effect, ...]:
        return tuple(effects_of(self._reader, "run_id = ?", (run_id,)))

    async def operation(self, principal: str, operation_id: str) -> OperationRecord | None:
        return operation_of(self._reader, principal, operation_id)

    async def revoked(self) -> frozenset[str]:
        return frozenset(row[0] for row in self._reader.execute("SELECT token FROM revoked"))

    async def counts(self) -> Counts:
        return counts_of(self._reader)
