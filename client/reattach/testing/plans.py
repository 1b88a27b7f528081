"""What a `MemoryServer` does to its clients: one value for each connection, each finite call, each beat of a run. No behaviour.

A plan is used once and in order; when no plan is left, all goes well. So a test that sets none sees a good server, and a list of
plans is a schedule that can be printed, shrunk and run again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

How = Literal["fin", "reset", "stall", "hold"]
"""How a connection ends: cleanly, broken, by silence while it stays open, or held back: heartbeats go on, events do not come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """What becomes of one attach.

    Attributes:
        delay: Seconds until the response's head; None: it never comes.
        refuse: Answer with this HTTP status instead.
        code: The problem's code of that refusal; None: no body.
        retry_after: Seconds that the refusal asks for.
        lost: The connection breaks before the head.
        again: So many events at and below the cursor are sent once more: an inclusive server, an overlapping replay.
        skip: So many events above the cursor are left out: a server that works around somebody's bug.
        cut: The body ends after so many whole blocks (the first is `stream.attached`) and so many bytes of the next.
        how: In which way it ends there.
        closing: The reason of a `stream.closing` that is sent before a cut between two blocks.
        read: Bytes that one read brings at most; 0: what is there.
        attached: Whether the stream says `stream.attached` at all.
        content_type: Of a 200.
    """

    delay: float | None = 0.0
    refuse: int | None = None
    code: str | None = None
    retry_after: float | None = None
    lost: bool = False
    again: int = 0
    skip: int = 0
    cut: tuple[int, int] | None = None
    how: How = "fin"
    closing: str | None = None
    read: int = 0
    attached: bool = True
    content_type: str = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """What becomes of one finite call.

    Attributes:
        delay: Seconds until the answer, which tells what was true at once; None: it never comes.
        refuse: Answer with this HTTP status, and do nothing.
        code: The problem's code of that refusal.
        retry_after: Seconds that the refusal asks for.
        lost: "before" the call reached the server, or "after" it was done: the connection breaks.
    """

    delay: float | None = 0.0
    refuse: int | None = None
    code: str | None = None
    retry_after: float | None = None
    lost: Literal["before", "after"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One thing that happens to a run.

    Attributes:
        after: Seconds since the beat before (the first: since the create).
        do: "event" appends one, "end" the settling one; "pause" asks for the actions in `data` (each with an `id`) and settles,
            "release" changes the release to `data`; "trim" forgets the oldest; "rotate" begins a new epoch, "lose" a tail is
            lost and the epoch is not changed, as a bad server does it.
        count: "trim": so many are forgotten; "rotate": so many are kept; "lose": so many are lost.
        type: Of the event.
        data: Of the event.
        tell: Whether open connections hear of a new epoch by `stream.closing`; otherwise they bring nothing more.
    """

    after: float = 0.0
    do: Literal["event", "end", "pause", "release", "trim", "rotate", "lose"] = "event"
    count: int = 0
    type: str = "message.delta"
    data: Any = None
    tell: bool = True
