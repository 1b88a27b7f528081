"""`Shape`: what generators know of the runs that a case plays, without playing them: the kind of each event.

A generator never sees a server. It is told how many events each run has, and of which kind; `shape_of` makes that from the types
of a log that was read in a clean pass.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

EventKind: TypeAlias = Literal[
    "created",
    "delta",
    "message",
    "tool-call",
    "tool-result",
    "action",
    "status",
    "error",
    "terminal",
    "heartbeat",
    "other",
]

EVENT_KINDS: tuple[EventKind, ...] = (
    "created", "delta", "message", "tool-call", "tool-result", "action", "status", "error", "terminal", "heartbeat",
)  # fmt: skip
"""The chaos page's kinds: before and after each of them something is cut."""

_TYPES: dict[str, EventKind] = {
    "run.created": "created",
    "message.delta": "delta",
    "message.completed": "message",
    "tool.call": "tool-call",
    "tool.result": "tool-result",
    "action.required": "action",
    "status": "status",
    "run.failed": "error",
    "run.completed": "terminal",
    "run.cancelled": "terminal",
    "run.paused": "terminal",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The runs of a case, each as the kinds of its events in order."""

    runs: tuple[tuple[EventKind, ...], ...]

    def events(self) -> Iterator[tuple[int, int, EventKind]]:
        """Yield (run, event, kind), both from 1."""
        for run, kinds in enumerate(self.runs, 1):
            for event, kind in enumerate(kinds, 1):
                yield run, event, kind

    def kind(self, run: int, event: int) -> EventKind | None:
        """Return the kind of an event, None where there is none."""
        if not 1 <= run <= len(self.runs) or not 1 <= event <= len(self.runs[run - 1]):
            return None
        return self.runs[run - 1][event - 1]


def shape_of(*logs: Iterable[str]) -> Shape:
    """Return the shape of runs whose events have these types, in the native protocol's words."""
    return Shape(tuple(tuple(_TYPES.get(type, "other") for type in types) for types in logs))


CANONICAL = Shape(
    (
        ("created", "delta", "delta", "message", "tool-call", "tool-result", "terminal"),
        ("created", "action", "terminal"),
        ("created", "error"),
    )
)
"""Twelve events in a session of three runs: one completes, one pauses, the one that goes on from it fails."""
