# ruff: noqa: D102 (the methods are documented once, in the seam)
"""Every read of a log on Redis. Each asks Redis itself, so none is behind what any replica has shown.

What is read is noted (`shown.py`), since it may be shown. A read that finds Redis restarted is made again, after what was
shown before has been looked for there.
"""

import json
from dataclasses import replace

from reattach_mockserver.event import Stored
from reattach_mockserver.logs.base import Counts, Effect, OperationRecord, RunRecord, SessionRecord
from reattach_mockserver.logs.redis.keys import (
    ACTIVE,
    COUNTS,
    REVOKED,
    RUNS,
    active_key,
    create_key,
    effects_key,
    events_key,
    operation_key,
    run_key,
    session_key,
    session_runs_key,
    steps_key,
)
from reattach_mockserver.logs.redis.link import Link, again
from reattach_mockserver.logs.redis.records import Row, effects_of, operation_of, row_of, stored_of
from reattach_mockserver.logs.redis.scripts import BY_KEY, FIRST_SINCE, LIST, READ
from reattach_mockserver.logs.redis.shown import Shown

_PAGE = 500


class Reader:
    """The reads of `base.EventLog`."""

    _link: Link

    def __init__(self) -> None:
        self._shown = Shown()

    async def run(self, run_id: str) -> RunRecord | None:
        row = await self._row(run_id)
        return None if row is None else self._noted(row)

    async def _row(self, run_id: str) -> Row | None:
        names = ("record", "number", "version", "owner")
        return row_of(await again(lambda: self._link.command("HMGET", run_key(run_id), *names)))

    def _noted(self, row: Row) -> RunRecord:
        self._shown.record(row.record)
        return row.record

    async def by_key(self, principal: str, key: str) -> RunRecord | None:
        found = await again(lambda: self._link.script(BY_KEY, create_key(principal, key)))
        return None if found is None else self._named(key, found[0], found[1])

    def _named(self, key: str, named: bytes, found: list[bytes | None]) -> RunRecord:
        """Return a run as the one of a key."""
        row = row_of(found)
        assert row is not None, "a key and its run are made in one transaction"
        return under_key(self._noted(row), key, json.loads(named)[1])

    async def read(self, run_id: str, after: int, limit: int, max_bytes: int) -> tuple[Stored, ...]:
        found = await again(lambda: self._link.script(READ, events_key(run_id), after, limit, max_bytes))
        return tuple(stored_of(each) for each in found)

    async def event_id(self, run_id: str, sequence: int) -> str | None:
        place = f"{sequence}-0"
        found = await again(lambda: self._link.command("XRANGE", events_key(run_id), place, place))
        return found[0][1][b"id"].decode() if found else None

    async def first_since(self, run_id: str, at: int) -> int:
        row = await self._row(run_id)
        if row is None:
            raise LookupError(run_id)
        after = row.record.last_sequence + 1
        return int(await again(lambda: self._link.script(FIRST_SINCE, events_key(run_id), at, after)))

    async def session(self, principal: str, session_id: str) -> SessionRecord | None:
        place = session_key(principal, session_id)
        created_at, last = await again(lambda: self._link.command("HMGET", place, "created_at", "last"))
        return None if last is None else SessionRecord(principal, session_id, created_at.decode(), last.decode())

    async def session_runs(self, principal: str, session_id: str, after: int, limit: int) -> tuple[RunRecord, ...]:
        return await self._list(session_runs_key(principal, session_id), after, limit)

    async def runs(self, after: int, limit: int) -> tuple[RunRecord, ...]:
        return await self._list(RUNS, after, limit)

    async def unfinished(self, principal: str | None = None) -> tuple[RunRecord, ...]:
        place = ACTIVE if principal is None else active_key(principal)
        found: list[RunRecord] = []
        while page := await self._list(place, found[-1].number if found else 0, _PAGE):
            found += page
        return tuple(found)

    async def _list(self, place: str, after: int, limit: int) -> tuple[RunRecord, ...]:
        rows = await again(lambda: self._link.script(LIST, place, after, limit))
        return tuple(self._noted(row) for found in rows if (row := row_of(found)) is not None)

    async def busy(self, principal: str) -> int:
        return int(await again(lambda: self._link.command("ZCARD", active_key(principal))))

    async def steps(self, run_id: str) -> frozenset[str]:
        found = await again(lambda: self._link.command("SMEMBERS", steps_key(run_id)))
        return frozenset(step.decode() for step in found)

    async def effects(self, run_id: str) -> tuple[Effect, ...]:
        return effects_of(run_id, await again(lambda: self._link.command("HGETALL", effects_key(run_id))))

    async def operation(self, principal: str, operation_id: str) -> OperationRecord | None:
        place = operation_key(principal, operation_id)
        return operation_of(operation_id, await again(lambda: self._link.command("HGETALL", place)))

    async def revoked(self) -> frozenset[str]:
        return frozenset(token.decode() for token in await again(lambda: self._link.command("SMEMBERS", REVOKED)))

    async def counts(self) -> Counts:
        found = await again(lambda: self._link.command("HGETALL", COUNTS))
        runs, events, effects, attempts = (
            int(found.get(name, 0)) for name in (b"runs", b"events", b"effects", b"attempts")
        )
        return Counts(runs=runs, events=events, effects=effects, effect_attempts=attempts)


def under_key(run: RunRecord, key: str, digest: str) -> RunRecord:
    """Return the run as it is known under one of its keys."""
    return replace(run, key=key, digest=digest)
