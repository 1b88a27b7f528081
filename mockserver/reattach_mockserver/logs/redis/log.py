# ruff: noqa: D102 (the methods are documented once, in the seam)
"""A log on Redis Streams that several replicas share: any of them serves any run, one at a time plays it.

A write reads what it needs, works out in Python what comes of it (`advance.py`), and hands both to one script, which does
it only if what was read is still so; else it begins anew. So of two replicas one is first, and the other sees what that has
done. The owner of a run knows how its last write left it and needs one round trip for the next.

A run's owner is the replica that created it or took it over, for as long as its lease, renewed all the time (`lease.py`), lasts.
A former owner that wakes is refused by its writer token. What a write survives is Redis's affair (`durability.py`): it
answers after its fsync where it is told to. A Redis that comes back without what was shown gets new epochs.

The law is `base.py`'s. Checked by tests/contracts/test_event_logs.py and tests/mockserver/test_redis_log.py.
"""

import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from redis.asyncio.connection import parse_url

from reattach_mockserver.event import SETTLED, Entry, Stored
from reattach_mockserver.logs.advance import advance, pinned, renewed, trimmed
from reattach_mockserver.logs.base import (
    Answers,
    Base,
    Claim,
    ClaimLost,
    Durability,
    Effect,
    Listener,
    LogUnavailable,
    RunRecord,
    RunSettled,
    SessionBusy,
    TooManyRuns,
    WriterLost,
)
from reattach_mockserver.logs.pause import answered, resolved
from reattach_mockserver.logs.redis.changes import Changes
from reattach_mockserver.logs.redis.durability import durability_of
from reattach_mockserver.logs.redis.examine import examine
from reattach_mockserver.logs.redis.keys import (
    REVOKED,
    WAKES,
    active_key,
    base_key,
    create_key,
    events_key,
    owned_key,
    session_active_key,
    session_key,
    steps_key,
)
from reattach_mockserver.logs.redis.lease import Lease
from reattach_mockserver.logs.redis.link import Link, Moved, Way, again, plain_name
from reattach_mockserver.logs.redis.reader import Reader, under_key
from reattach_mockserver.logs.redis.records import Row, effect_of, effect_text, row_of, stored_of
from reattach_mockserver.logs.redis.scripts import CLAIM, COMMIT, COMPACT, LOOK, LOOK_CREATE, OWNED, PERFORM, TAIL
from reattach_mockserver.logs.redis.subscription import Subscription
from reattach_mockserver.logs.redis.turns import Turns

_ATTEMPTS = 64  # times that others may be first; every time one of them is done
_KNOWN = 10_000  # runs whose last state is kept


class _Nobody:
    """Hears nothing."""

    def changed(self, run_id: str) -> None: ...
    def orphaned(self) -> None: ...
    def revoked(self, token: str) -> None: ...
    def missed(self) -> None: ...


class RedisLog(Reader):
    """See the module; see `base.EventLog` for what the methods promise.

    Args:
        url: `redis://[user:password@]host[:port][/database]`, `rediss://…`, `unix://…`.
        lease: Seconds after which the runs of a replica that was killed are anybody's.

    Raises:
        ValueError: The address is none.
    """

    def __init__(self, url: str, *, lease: float = 5.0) -> None:
        super().__init__()
        parse_url(url)  # a wrong one is told at once
        self._url = url
        self._lease_seconds = lease
        self._listener: Listener = _Nobody()
        self._durability: Durability = "memory"
        self._rows: OrderedDict[str, Row] = OrderedDict()
        self._turns = Turns()
        self.replica = ""

    @property
    def name(self) -> str:
        return plain_name(self._url)

    @property
    def durability(self) -> Durability:
        return self._durability

    def listen(self, listener: Listener) -> None:
        self._listener = listener

    async def open(self) -> None:
        # Anew each time: what an earlier life owned is anybody's.
        self.replica = f"{parse_url(self._url).get('db', 0)}.{secrets.token_hex(8)}"
        self._link = Link(self._url, self._examine)
        self._lease = Lease(self._link, self.replica, self._lease_seconds, self._listener)
        self._subscription = Subscription(self._link, self.replica, self._listener, self._reconnected)
        try:
            await self._reconnected()
            await self._subscription.open()
            await self._lease.open()
        except BaseException:
            await self._subscription.close()
            await self._link.close()
            raise

    async def close(self) -> None:
        await self._subscription.close()
        await self._lease.close()
        await self._link.close()
        self._rows.clear()

    async def _reconnected(self) -> None:
        try:
            await self._link.command("PING")
        except Moved:
            await self._link.command("PING")
        self._listener.missed()

    async def _examine(self, way: Way) -> None:
        """See to a Redis that was reached for the first time, or has been restarted."""
        self._rows.clear()
        self._durability = await durability_of(way)
        await examine(way, self._shown, self.replica)

    # Writing

    async def create(
        self,
        run: RunRecord,
        entries: Sequence[Entry],
        *,
        runs_limit: int | None = None,
        answers: Answers | None = None,
    ) -> tuple[RunRecord, bool]:
        place = (run.principal, run.session_id)
        named = create_key(run.principal, run.key)
        look = (run.principal, run.key, run.session_id, "" if answers is None else run.continues or "")
        for _ in range(_ATTEMPTS):
            try:
                found: list[Any] = await self._link.script(LOOK_CREATE, *look)
            except Moved:
                continue
            if found[0] is not None:
                known = self._named(run.key, found[0], found[1])
                return known, known.id == run.id  # an earlier attempt of the same call made it
            (began, version), active, waiting, number, before, after = found[1:]
            changes = Changes(self.replica)
            changes.expect("0", "EXISTS", named)
            paused = None
            if answers is not None:
                held = row_of(before or (None,) * 4)
                if held is None:
                    raise LookupError(run.continues)
                paused = answered(held.record, run.id, answers)
                if paused is None:
                    made = row_of(after)
                    assert made is not None, "an answered run and its continuation are one transaction"
                    changes.do("SET", named, json.dumps([made.record.id, run.digest]))
                    if await self._commit(changes):
                        return under_key(self._noted(made), run.key, run.digest), False
                    continue
                self._write(changes, held, paused)
            if active:
                raise SessionBusy(min(each.decode() for each in active))
            if runs_limit is not None:
                if number >= runs_limit:
                    raise TooManyRuns(run.principal)
                changes.expect_below(runs_limit, "ZCARD", active_key(run.principal))
            changes.expect((version or b"").decode(), "HGET", session_key(*place), "version")
            changes.expect("0", "SCARD", session_active_key(*place))
            for each in waiting:
                other = row_of(each)
                if other is not None and (paused is None or other.record.id != paused.id):
                    self._write(changes, other, resolved(other.record, "lapsed", entries[0].at))
            record, _, new = advance(run, run.writer, entries, {}, None)
            row = self._row_of(record, self.replica)
            changes.create(row, run.created_at if began is None else began.decode())
            changes.append(record, new)
            changes.do("SET", named, json.dumps([run.id, run.digest]))
            given = await self._commit(changes)
            if given:
                record = replace(record, number=int(given))
                self._keep(replace(row, record=record))
                return record, True
        raise LogUnavailable("others were first again and again")

    async def append(
        self, run_id: str, writer: int, entries: Sequence[Entry], *, keep: int | None = None
    ) -> tuple[RunRecord, tuple[Stored, ...]]:
        async with self._turns.turn(run_id):
            for _ in range(_ATTEMPTS):
                row, known = self._rows.get(run_id), dict[str, Stored]()
                self._rows.pop(run_id, None)  # until it is known how this write has left it
                if row is None or row.record.writer != writer or row.record.status in SETTLED:
                    try:
                        row, known = await self._look(run_id, entries)
                    except Moved:
                        continue
                record, stored, new = advance(row.record, writer, entries, known, keep)
                if record == row.record:
                    return self._noted(row), stored
                changes = Changes(self.replica)
                changes.expect_new(run_id, [entry for entry in entries if entry.id not in known])
                after = self._write(changes, row, record)
                changes.append(record, new)
                if await self._commit(changes):
                    self._keep(after)
                    return record, stored
        raise LogUnavailable("others were first again and again")

    async def _look(self, run_id: str, entries: Sequence[Entry]) -> tuple[Row, dict[str, Stored]]:
        first, *events = await self._link.script(LOOK, run_id, *(entry.id for entry in entries))
        row = row_of(first)
        if row is None:
            raise LookupError(run_id)
        known = {entry.id: stored_of(found) for entry, found in zip(entries, events, strict=True) if found is not None}
        return row, known

    async def take_over(self, run_id: str, writer: int | None = None) -> RunRecord:
        def taken(run: RunRecord) -> RunRecord:
            if writer not in (None, run.writer):
                raise WriterLost(run_id)
            return replace(run, writer=run.writer + 1)

        return await self._change(run_id, taken, owner=self.replica)

    async def orphans(self, limit: int | None = None) -> tuple[RunRecord, ...]:
        return await self._lease.orphans(limit)

    async def owned(self) -> tuple[RunRecord, ...]:
        rows = await again(lambda: self._link.script(OWNED, owned_key(self.replica)))
        return tuple(row.record for found in rows if (row := row_of(found)) is not None)

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

    async def _change(
        self, run_id: str, change: Callable[[RunRecord], RunRecord], *, owner: str | None = None
    ) -> RunRecord:
        async with self._turns.turn(run_id):
            for _ in range(_ATTEMPTS):
                row = await self._row(run_id)
                if row is None:
                    raise LookupError(run_id)
                record = change(row.record)
                if record == row.record:
                    return self._noted(row)
                changes = Changes(self.replica)
                after = self._write(changes, row, record, owner=owner)
                if await self._commit(changes):
                    self._keep(after)
                    return record
        raise LogUnavailable("others were first again and again")

    async def compact(self, run_id: str, writer: int, done: int, base: Base) -> None:
        await again(lambda: self._link.script(COMPACT, run_id, writer, done, base.sequence, base.fold))

    async def base(self, run_id: str) -> Base | None:
        names = ("sequence", "fold")
        sequence, fold = await again(lambda: self._link.command("HMGET", base_key(run_id), *names))
        return None if fold is None else Base(int(sequence), fold.decode())

    async def renew(self, run_id: str, keep: int | None = None) -> RunRecord:
        async with self._turns.turn(run_id):
            for _ in range(_ATTEMPTS):
                row = await self._row(run_id)
                if row is None:
                    raise LookupError(run_id)
                changes, run = Changes(self.replica), row.record
                last, last_time = None, run.last_time
                if keep is not None and run.answers is None:
                    try:
                        found = await self._link.script(TAIL, events_key(run_id), keep, keep)
                        lost = await self._link.script(TAIL, events_key(run_id), keep + 1, run.last_sequence)
                    except Moved:
                        continue
                    if not found:
                        raise LookupError(f"event {keep} of {run_id} is not kept")
                    (kept,) = found
                    last = Stored(keep, kept[1].decode(), "", False, kept[3])
                    last_time = json.loads(kept[3])["time"]
                    changes.drop(run_id, keep, lost)
                record = renewed(run, last, last_time)
                after = self._write(changes, row, record, owner=self.replica)
                if await self._commit(changes):
                    self._keep(after)
                    return record
        raise LogUnavailable("others were first again and again")

    async def mark(self, run_id: str, step: str) -> None:
        await self._insist("SADD", steps_key(run_id), step)

    async def claim(self, run_id: str, writer: int, operation_id: str) -> Claim:
        match await again(lambda: self._link.script(CLAIM, run_id, writer, operation_id)):
            case b"missing":
                raise LookupError(run_id)
            case b"writer":
                raise WriterLost(run_id)
            case b"settled":
                raise RunSettled(run_id)
            case [number, None]:
                return Claim(operation_id, int(number))
            case [number, done]:
                return Claim(operation_id, int(number), effect_of(run_id, operation_id, done))
            case other:
                raise AssertionError(other)

    async def perform(self, effect: Effect, *, claim: int = 0) -> Effect:
        words = (effect.run_id, effect.operation_id, claim, effect_text(effect))
        done = await again(lambda: self._link.script(PERFORM, *words))
        if done is None:
            raise ClaimLost(effect.operation_id)
        return effect_of(effect.run_id, effect.operation_id, done)

    async def revoke(self, token: str) -> None:
        await self._insist("SADD", REVOKED, token)
        await self._insist("PUBLISH", WAKES, f"{self.replica} revoked {token}")

    # Inside

    def _write(self, changes: Changes, before: Row, record: RunRecord, *, owner: str | None = None) -> Row:
        """Add to the changes that a run becomes `record`, if it is still as it was."""
        changes.expect_run(before)
        after = self._row_of(record, before.owner if owner is None else owner)
        changes.update(before, after)
        return after

    @staticmethod
    def _row_of(record: RunRecord, owner: str) -> Row:
        # A version of chance, not a count: one from a copy of the log that was replaced by another means nothing.
        return Row(record, secrets.token_hex(8), owner)

    def _keep(self, row: Row) -> None:
        self._rows[row.record.id] = row
        self._rows.move_to_end(row.record.id)
        if len(self._rows) > _KNOWN:
            self._rows.popitem(last=False)
        self._shown.record(row.record)

    async def _commit(self, changes: Changes) -> bytes | None:
        """Do all of it, or nothing if something is not as expected; return the number of a new run, `0` without one."""
        try:
            found = await self._link.script(COMMIT, *changes.words())
        except Moved:
            return None
        return None if found is None else found[1] or b"0"

    async def _insist(self, *words: str) -> None:
        await again(lambda: self._link.command(*words))
