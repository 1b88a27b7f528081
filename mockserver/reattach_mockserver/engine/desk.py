# ruff: noqa: D102 (the methods are documented once, in the seam)
"""The desk of a work: publishes for one run, and lends the work its clock, its ledger and its points.

What was published under an earlier epoch of the run counts as published: a step leaves one event in a run, whatever was
done to its log in between. The seam is `work.py`. Never here: what a work does, how a run settles (`worker.py`).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from reattach_mockserver.engine.clock import RunClock
from reattach_mockserver.engine.insisting import insisting
from reattach_mockserver.engine.publisher import Publisher, entry, event_id
from reattach_mockserver.engine.work import ActionKind, Note, RunCancelled
from reattach_mockserver.event import Entry, EventTooLarge, Operation, Stored
from reattach_mockserver.logs.base import Claim, Effect, EventLog, RunRecord
from reattach_mockserver.moment import moment
from reattach_mockserver.settings import Limits

_PAGE = 500
_PAGE_BYTES = 1 << 22
_PREFIX = "work."  # keeps a work's steps apart from the engine's own
_OWN = ("run.", "stream.", "action.resolved", "release.changed")


class RunDesk:
    """See the module; see `work.Desk` for what the methods promise."""

    def __init__(
        self,
        run: RunRecord,
        *,
        log: EventLog,
        publisher: Publisher,
        clock: RunClock,
        limits: Limits,
        reached: Callable[[str, str], Awaitable[None]] | None = None,
    ) -> None:
        self.cancelled = asyncio.Event()
        self._run = run
        self._log = log
        self._publisher = publisher
        self._clock = clock
        self._limits = limits
        self._reached = reached
        self._input = None if run.input is None else json.loads(run.input)
        self._steps: frozenset[str] | None = None
        self._places: dict[str, int] | None = None

    @property
    def run(self) -> RunRecord:
        return self._run

    @property
    def input(self) -> Any:
        return self._input

    @property
    def now(self) -> Callable[[], int]:
        return self._clock.now

    # Reading

    async def events(self, run_id: str | None = None) -> AsyncIterator[dict[str, Any]]:
        run_id, first = run_id or self._run.id, True
        async for event in self.kept(run_id):
            if first and event["sequence"] != 1:
                raise LookupError(f"the first {event['sequence'] - 1} events of {run_id} are not kept")
            first = False
            yield event

    async def kept(self, run_id: str) -> AsyncIterator[dict[str, Any]]:
        """Return the events that the log has, whether or not they are all."""
        after = 0
        while page := await self._log.read(run_id, after, _PAGE, _PAGE_BYTES):
            for stored in page:
                yield json.loads(stored.body)
            after = page[-1].sequence

    async def earlier(self) -> tuple[RunRecord, ...]:
        found: list[RunRecord] = []
        while page := await self._log.session_runs(
            self._run.principal, self._run.session_id, found[-1].number if found else 0, _PAGE
        ):
            found += page
        return tuple(run for run in found if run.number < self._run.number)

    def event_id(self, step: str) -> str:
        return event_id(self._run, _PREFIX + step)

    # Publishing

    def required(
        self,
        step: str,
        kind: ActionKind,
        *,
        id: str,
        tool: str,
        arguments: Mapping[str, Any],
        operation_id: str,
        thread: str | None = None,
        expires_in_ms: int | None = None,
    ) -> Note:
        action = {
            "id": id,
            "kind": kind,
            "source_event_id": self.event_id(step),
            "thread": thread,
            "tool": tool,
            "arguments": dict(arguments),
            "operation_id": operation_id,
            "expires_at": None if expires_in_ms is None else moment(self._clock.ms(0) + expires_in_ms),
            "resolution": None,
        }
        told = Operation(id=operation_id, tool=tool, waits=True)
        return Note(step=step, type="action.required", data={"action": action}, operation=told)

    async def publish(
        self,
        step: str,
        type: str,
        data: Mapping[str, Any],
        *,
        text: str | None = None,
        operation: Operation | None = None,
    ) -> dict[str, Any]:
        (event,) = await self.publish_all([Note(step=step, type=type, data=data, text=text, operation=operation)])
        return event

    async def publish_all(self, notes: Sequence[Note]) -> list[dict[str, Any]]:
        if self._steps is None:
            self._steps = await self._log.steps(self._run.id)
        entries = {note.step: self._entry(note) for note in notes if _PREFIX + note.step not in self._steps}
        new = {}
        if entries:
            new = dict(zip(entries, await self.append(list(entries.values())), strict=True))
        stored = [new.get(note.step) or await self._published(note.step) for note in notes]
        return [json.loads(each.body) for each in stored]

    async def append(self, entries: Sequence[Entry]) -> tuple[Stored, ...]:
        """Append entries of the run and wake its readers; for the engine, which has its own types of events."""
        self._run, stored = await self._publisher.store(self._run, entries, self._limits.retention_events)
        # A log that never waits would keep the loop: let readers have it between two appends.
        await asyncio.sleep(0)
        return stored

    def _entry(self, note: Note) -> Entry:
        if note.type.startswith(_OWN):
            raise ValueError(f"{note.type!r} is published by the engine, not by a work")
        offered = entry(
            self._run,
            _PREFIX + note.step,
            note.type,
            dict(note.data),
            time=self._clock.time(0),
            at=self._clock.now(),
            text=note.text,
            operation=note.operation,
        )
        if offered.size > self._limits.event_bytes:
            raise EventTooLarge(
                f"event {note.type!r} of {offered.size} bytes is above the limit of {self._limits.event_bytes}"
            )
        return offered

    async def _published(self, step: str) -> Stored:
        """Return the event of a step that was in the log when the work began."""
        if self._places is None:
            self._places = {event["id"]: event["sequence"] async for event in self.events()}
        for number in range(self._run.incarnation, 0, -1):
            place = self._places.get(event_id(replace(self._run, incarnation=number), _PREFIX + step))
            if place is not None:
                return (await self._log.read(self._run.id, place - 1, 1, _PAGE_BYTES))[0]
        raise LookupError(f"the event of step {step!r} is no longer kept")

    # Effects

    async def claim(self, operation_id: str) -> Claim:
        return await insisting(lambda: self._log.claim(self._run.id, self._run.writer, operation_id))

    async def perform(self, effect: Effect, claim: Claim) -> Effect:
        return await insisting(lambda: self._log.perform(effect, claim=claim.number))

    # Time

    async def resting(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.cancelled.wait()
        if self.cancelled.is_set():
            raise RunCancelled

    async def reached(self, point: str) -> None:
        if self._reached is not None:
            await self._reached(self._run.id, point)
