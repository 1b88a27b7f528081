# ruff: noqa: D102 (the methods are documented once, in the seam)
"""A log that forgets with its process: for tests, demos and scenarios that need no restart.

Nothing here is durable and nothing waits, so each method is one transaction of the event loop. The same
law as every log (`base.py`), but for what survives.
"""

import dataclasses
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from reattach_mockserver.event import SETTLED, Entry, Operation, Stored
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
    OperationRecord,
    RunRecord,
    RunSettled,
    SessionBusy,
    SessionRecord,
    TooManyRuns,
    WriterLost,
)
from reattach_mockserver.logs.pause import answered, resolved


@dataclasses.dataclass(slots=True)
class _Run:
    """A run's record and its events, the one of sequence n at n - 1."""

    record: RunRecord
    events: list[Stored] = dataclasses.field(default_factory=list)
    entries: list[Entry] = dataclasses.field(default_factory=list)
    by_id: dict[str, Stored] = dataclasses.field(default_factory=dict)
    steps: set[str] = dataclasses.field(default_factory=set)


class MemoryLog:
    """See the module; see `base.EventLog` for what the methods promise."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._keys: dict[tuple[str, str], tuple[str, str]] = {}
        self._sessions: dict[tuple[str, str], tuple[SessionRecord, list[str]]] = {}
        self._active: dict[str, _Run] = {}
        self._effects: dict[tuple[str, str], Effect] = {}
        self._claims: dict[tuple[str, str], int] = {}
        self._operations: dict[tuple[str, str], dict[str, OperationRecord]] = {}
        self._revoked: set[str] = set()

    @property
    def name(self) -> str:
        return "memory"

    @property
    def durability(self) -> Durability:
        return "memory"

    def listen(self, listener: Listener) -> None:
        """Nobody else has it."""

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do: an engine that opens it again finds its runs."""

    async def create(
        self,
        run: RunRecord,
        entries: Sequence[Entry],
        *,
        runs_limit: int | None = None,
        answers: Answers | None = None,
    ) -> tuple[RunRecord, bool]:
        known = await self.by_key(run.principal, run.key)
        if known is not None:
            return known, False
        paused = None
        if answers is not None:
            before = self._runs[run.continues or ""].record
            paused = answered(before, run.id, answers)
            if paused is None:
                self._keys[run.principal, run.key] = (before.continued_by or "", run.digest)
                return replace(self._runs[before.continued_by or ""].record, key=run.key, digest=run.digest), False
        place = (run.principal, run.session_id)
        session, others = self._sessions.get(place, (None, []))
        for other in others:
            if other in self._active:
                raise SessionBusy(other)
        if runs_limit is not None and await self.busy(run.principal) >= runs_limit:
            raise TooManyRuns(run.principal)
        if paused is not None:
            self._runs[paused.id].record = paused
        for other in others:
            self._resolve(self._runs[other], "lapsed", entries[0].at)
        held = _Run(replace(run, number=len(self._runs) + 1))
        self._runs[run.id] = self._active[run.id] = held
        self._keys[run.principal, run.key] = (run.id, run.digest)
        created_at = run.created_at if session is None else session.created_at
        self._sessions[place] = (SessionRecord(*place, created_at, run.id), [*others, run.id])
        self._append(held, run.writer, entries, None)
        return held.record, True

    async def append(
        self, run_id: str, writer: int, entries: Sequence[Entry], *, keep: int | None = None
    ) -> tuple[RunRecord, tuple[Stored, ...]]:
        held = self._runs[run_id]
        stored = self._append(held, writer, entries, keep)
        return held.record, stored

    def _append(self, held: _Run, writer: int, entries: Sequence[Entry], keep: int | None) -> tuple[Stored, ...]:
        held.record, stored, new = advance(held.record, writer, entries, held.by_id, keep)
        for entry, event in new:
            held.events.append(event)
            held.entries.append(entry)
            held.by_id[entry.id] = event
            held.steps.add(entry.step)
            if entry.operation is not None:
                self._tell(held.record.id, entry.operation)
        if held.record.status in SETTLED:
            self._active.pop(held.record.id, None)
        return stored

    async def take_over(self, run_id: str, writer: int | None = None) -> RunRecord:
        if writer not in (None, self._runs[run_id].record.writer):
            raise WriterLost(run_id)
        return self._change(run_id, writer=self._runs[run_id].record.writer + 1)

    async def orphans(self, limit: int | None = None) -> tuple[RunRecord, ...]:
        return (await self.unfinished())[:limit]

    async def owned(self) -> tuple[RunRecord, ...]:
        return await self.unfinished()

    async def ask_cancel(self, run_id: str, reason: str) -> RunRecord:
        record = self._runs[run_id].record
        if record.status in SETTLED or record.cancel_reason is not None:
            return record
        return self._change(run_id, cancel_reason=reason)

    async def resolve(self, run_id: str, resolution: str, at: int) -> RunRecord:
        self._resolve(self._runs[run_id], resolution, at)
        return self._runs[run_id].record

    @staticmethod
    def _resolve(held: _Run, resolution: str, at: int) -> None:
        held.record = resolved(held.record, resolution, at)

    async def trim(self, run_id: str, first: int, at: int) -> RunRecord:
        held = self._runs[run_id]
        held.record = trimmed(held.record, first, at)
        return held.record

    async def pin(self, run_id: str, sequence: int, at: int, until: int) -> RunRecord:
        held = self._runs[run_id]
        held.record = pinned(held.record, sequence, at, until)
        return held.record

    async def compact(self, run_id: str, writer: int, done: int, base: Base) -> None:
        """Keeps everything."""

    async def base(self, run_id: str) -> Base | None:
        return None

    async def renew(self, run_id: str, keep: int | None = None) -> RunRecord:
        held = self._runs[run_id]
        keep = keep if held.record.answers is None else None
        last = None if keep is None else held.events[keep - 1]
        if keep is not None:
            for entry in held.entries[keep:]:
                del held.by_id[entry.id]
                held.steps.discard(entry.step)
            del held.events[keep:], held.entries[keep:]
        held.record = renewed(held.record, last, held.entries[-1].time)
        if held.record.status not in SETTLED:
            self._active[run_id] = held
        return held.record

    async def mark(self, run_id: str, step: str) -> None:
        self._runs[run_id].steps.add(step)

    async def claim(self, run_id: str, writer: int, operation_id: str) -> Claim:
        record, place = self._runs[run_id].record, (run_id, operation_id)
        if writer != record.writer:
            raise WriterLost(run_id)
        if record.status in SETTLED:
            raise RunSettled(run_id)
        if place not in self._effects:
            self._claims[place] = self._claims.get(place, 0) + 1
        return Claim(operation_id, self._claims.get(place, 0), self._effects.get(place))

    async def perform(self, effect: Effect, *, claim: int = 0) -> Effect:
        place = (effect.run_id, effect.operation_id)
        if claim != self._claims.get(place, 0):
            raise ClaimLost(effect.operation_id)
        done = self._effects.get(place)
        self._effects[place] = effect if done is None else replace(done, attempts=done.attempts + 1)
        done = self._effects[place]
        known = self._registered(*place)
        external = known is not None and known.external
        self._register(
            OperationRecord(*place, done.tool, "committed", done.reversible, external, waits=False, result=done.result)
        )
        return done

    def _tell(self, run_id: str, told: Operation) -> None:
        known = self._registered(run_id, told.id)
        if known is None:
            self._register(
                OperationRecord(run_id, told.id, told.tool, told.status, told.reversible, told.external, told.waits)
            )
        elif known.status != "committed":  # a log that lost its tail tells of the call a second time
            self._register(replace(known, status=told.status))

    def _registered(self, run_id: str, operation_id: str) -> OperationRecord | None:
        return self._operations.get((self._runs[run_id].record.principal, operation_id), {}).get(run_id)

    def _register(self, operation: OperationRecord) -> None:
        place = (self._runs[operation.run_id].record.principal, operation.id)
        self._operations.setdefault(place, {})[operation.run_id] = operation

    async def revoke(self, token: str) -> None:
        self._revoked.add(token)

    def _change(self, run_id: str, *, writer: int | None = None, cancel_reason: str | None = None) -> RunRecord:
        held = self._runs[run_id]
        held.record = replace(
            held.record, writer=writer or held.record.writer, cancel_reason=cancel_reason or held.record.cancel_reason
        )
        return held.record

    async def run(self, run_id: str) -> RunRecord | None:
        held = self._runs.get(run_id)
        return None if held is None else held.record

    async def by_key(self, principal: str, key: str) -> RunRecord | None:
        run_id, digest = self._keys.get((principal, key), ("", ""))
        run = await self.run(run_id)
        return None if run is None else replace(run, key=key, digest=digest)

    async def read(self, run_id: str, after: int, limit: int, max_bytes: int) -> tuple[Stored, ...]:
        page: list[Stored] = []
        for event in self._runs[run_id].events[after : after + limit]:
            max_bytes -= len(event.body)
            if page and max_bytes < 0:
                break
            page.append(event)
        return tuple(page)

    async def event_id(self, run_id: str, sequence: int) -> str | None:
        events = self._runs[run_id].events
        return events[sequence - 1].id if 1 <= sequence <= len(events) else None

    async def first_since(self, run_id: str, at: int) -> int:
        return bisect_left(self._runs[run_id].entries, at, key=lambda entry: entry.at) + 1

    async def session(self, principal: str, session_id: str) -> SessionRecord | None:
        return self._sessions.get((principal, session_id), (None, []))[0]

    async def session_runs(self, principal: str, session_id: str, after: int, limit: int) -> tuple[RunRecord, ...]:
        _, ids = self._sessions.get((principal, session_id), (None, []))
        records = (self._runs[run_id].record for run_id in ids)
        return tuple(record for record in records if record.number > after)[:limit]

    async def runs(self, after: int, limit: int) -> tuple[RunRecord, ...]:
        # Numbers are given in the order in which the runs came, from 1, and no run goes.
        return tuple(held.record for held in islice(self._runs.values(), after, after + limit))

    async def unfinished(self, principal: str | None = None) -> tuple[RunRecord, ...]:
        records = (held.record for held in self._active.values())
        return tuple(record for record in records if principal is None or record.principal == principal)

    async def busy(self, principal: str) -> int:
        return sum(held.record.principal == principal for held in self._active.values())

    async def steps(self, run_id: str) -> frozenset[str]:
        return frozenset(self._runs[run_id].steps)

    async def effects(self, run_id: str) -> tuple[Effect, ...]:
        return tuple(effect for effect in self._effects.values() if effect.run_id == run_id)

    async def operation(self, principal: str, operation_id: str) -> OperationRecord | None:
        return next(reversed(self._operations.get((principal, operation_id), {}).values()), None)

    async def revoked(self) -> frozenset[str]:
        return frozenset(self._revoked)

    async def counts(self) -> Counts:
        return Counts(
            runs=len(self._runs),
            events=sum(len(held.events) for held in self._runs.values()),
            effects=len(self._effects),
            effect_attempts=sum(effect.attempts for effect in self._effects.values()),
        )
