"""What a run has done to the world so far, for whoever cancels it: cancelled does not mean rolled back.

Checked by tests/mockserver/test_cancel.py. Where the rules come from: PROTOCOL, section 5, cancel.
"""

from collections.abc import AsyncIterable
from dataclasses import dataclass
from typing import Any, Self

from reattach_mockserver.logs.base import EventLog, RunRecord
from reattach_mockserver.scenarios.expand import PlannedCall


@dataclass(frozen=True, slots=True)
class _Known:
    """What the log knows of a call that no script planned."""

    reversible: bool
    external: bool
    error: Any = None


class Inventory:
    """The operations of one run, each in exactly one list."""

    def __init__(self) -> None:
        self._in_flight: dict[str, PlannedCall | _Known] = {}
        self._settled: dict[str, PlannedCall | _Known] = {}

    @classmethod
    async def of_events(cls, log: EventLog, run: RunRecord, events: AsyncIterable[dict[str, Any]]) -> Self:
        """Take stock of a run by its events and by what the log knows of their operations."""
        found = cls()
        async for event in events:
            match event:
                case {"type": "tool.call", "data": {"operation_id": str(operation_id)}}:
                    found.called(operation_id, await _known(log, run, operation_id))
                case {"type": "tool.result", "data": {"operation_id": str(operation_id), **rest}}:
                    if operation_id in found._in_flight and await _status(log, run, operation_id) != "unknown":
                        found.settled(operation_id, await _known(log, run, operation_id, rest.get("error")))
                case _:
                    pass
        for operation_id in list(found._in_flight):
            if await _status(log, run, operation_id) == "committed":
                found.settled(operation_id, found._in_flight[operation_id])
        return found

    def called(self, operation_id: str, call: PlannedCall | _Known) -> None:
        """A tool was called: from here on its effect may happen."""
        self._in_flight[operation_id] = call

    def settled(self, operation_id: str, call: PlannedCall | _Known) -> None:
        """Its outcome is in the log."""
        self._in_flight.pop(operation_id, None)
        self._settled[operation_id] = call

    def lists(self) -> dict[str, list[str]]:
        """Return the ids: of known outcome, of unknown outcome, known and not to be undone; and those outside of us."""
        irreversible = [
            operation_id for operation_id, call in self._settled.items() if not call.reversible and call.error is None
        ]
        return {
            "known": [operation_id for operation_id in self._settled if operation_id not in irreversible],
            "unknown": list(self._in_flight),
            "irreversible": irreversible,
            "external": [
                operation_id for operation_id, call in {**self._settled, **self._in_flight}.items() if call.external
            ],
        }


async def _known(log: EventLog, run: RunRecord, operation_id: str, error: Any = None) -> _Known:
    told = await log.operation(run.principal, operation_id)
    # What was never told to be reversible is taken for what cannot be undone.
    return _Known(told is not None and told.reversible is True, told is not None and told.external, error)


async def _status(log: EventLog, run: RunRecord, operation_id: str) -> str | None:
    told = await log.operation(run.principal, operation_id)
    return None if told is None else told.status
