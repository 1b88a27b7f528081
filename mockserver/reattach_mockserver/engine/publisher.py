"""The one path by which an event becomes visible: durable in the log, then a wake-up. Nothing else appends.

Where the rules come from: the contract, "Promises of the reference server": durable before visible; an append whose
answer was lost is sent again under the same ids.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from reattach_mockserver.engine.clock import RunClock
from reattach_mockserver.engine.hub import Hub
from reattach_mockserver.engine.insisting import insisting
from reattach_mockserver.event import SETTLING, Entry, Operation, Stored, json_text
from reattach_mockserver.hooks import Hooks
from reattach_mockserver.logs.base import EventLog, RunRecord

Trimmed: TypeAlias = Callable[[RunRecord, RunRecord], Awaitable[None]]

_SETTLING_TYPE = {status: kind for kind, status in SETTLING.items()}


def event_id(run: RunRecord, step: str) -> str:
    """Choose the id of the event that a step leaves: the same in every attempt, another in another incarnation."""
    return "evt_" + hashlib.sha256(f"{run.epoch}:{step}".encode()).hexdigest()[:24]


def entry(
    run: RunRecord,
    step: str,
    kind: str,
    data: Any,
    *,
    time: str,
    at: int,
    text: str | None = None,
    status: str | None = None,
    release: str | None = None,
    pause: str | None = None,
    operation: Operation | None = None,
) -> Entry:
    """Make an entry of the run, at the run's `time` and the server's `at` ms.

    `status`: what the run is with it; if that settles it, `data` is the outcome.

    Raises:
        ValueError: The data hold a number that is not finite.
    """
    data_text = json_text(data)
    return Entry(
        id=event_id(run, step),
        step=step,
        type=kind,
        time=time,
        at=at,
        data=data_text,
        text=None if text is None else json_text(text),
        status=status,
        outcome=data_text if status is not None else None,
        release=release,
        pause=pause,
        operation=operation,
    )


def settling(
    run: RunRecord, step: str, status: str, data: Any, clock: RunClock, at_ms: int, pause: str | None = None
) -> Entry:
    """Make the run's settling event."""
    kind = _SETTLING_TYPE[status]
    return entry(run, step, kind, data, time=clock.time(at_ms), at=clock.now(), status=status, pause=pause)


class Publisher:
    """Appends for one engine. `trimmed` is awaited, after the wake-up, with the run before and after an append."""

    def __init__(self, log: EventLog, hub: Hub, hooks: Hooks | None = None, trimmed: Trimmed | None = None) -> None:
        self._log = log
        self._hub = hub
        self._hooks = hooks or Hooks()
        self._trimmed = trimmed

    async def publish(self, run: RunRecord, entries: Sequence[Entry], keep: int | None) -> RunRecord:
        """Append as `store` does; return the run."""
        return (await self.store(run, entries, keep))[0]

    async def store(
        self, run: RunRecord, entries: Sequence[Entry], keep: int | None
    ) -> tuple[RunRecord, tuple[Stored, ...]]:
        """Append all entries under the run's writer token, then wake its readers; return the run and what is kept.

        Raises:
            WriterLost: Another writer has the run.
            RunSettled: The run has settled.
            LogUnavailable: The storage failed again and again.
        """
        hooks = self._hooks
        if hooks.reached is not None:
            await hooks.reached(run.id, f"append {steps_of(entries)}")
        if hooks.appending is not None:
            await hooks.appending(run.id, run.last_sequence)
        record, stored = await insisting(lambda: self._log.append(run.id, run.writer, entries, keep=keep))
        if hooks.reached is not None:
            await hooks.reached(run.id, f"publish {steps_of(entries)}")
        if hooks.durable is not None:
            await hooks.durable(run.id, record.last_sequence)
        self._hub.wake(run.id)
        if hooks.reached is not None:
            await hooks.reached(run.id, f"published {steps_of(entries)}")
        if hooks.woken is not None:
            await hooks.woken(run.id, record.last_sequence)
        if self._trimmed is not None:
            await self._trimmed(run, record)
        return record, stored


def steps_of(entries: Sequence[Entry]) -> str:
    """Name entries by their steps, for whoever watches an append go by."""
    return " ".join(entry.step for entry in entries)
