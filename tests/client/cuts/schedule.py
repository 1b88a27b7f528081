"""Schedules: what happens to one run and to everybody who follows it, as a value that can be printed, shrunk and played again.

`schedule_from` draws one from a `random.Random`: a seeded one for volume, Hypothesis' own for shrinking. Small numbers come first
and faults are rare at the low end, so that what Hypothesis shrinks to is short.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Literal

from reattach.model import OnGap
from reattach.policy import Policy
from reattach.testing import Beat, Leg, Trip
from reattach.testing.plans import How

POLICY = Policy(
    give_up_after=120.0,
    retry_floor=0.1,
    retry_base=0.25,
    retry_ceiling=4.0,
    connect_timeout=3.0,
    idle_timeout=6.0,
    poll_interval=5.0,
)
HEARTBEAT_MS = 2_000
"""Times are short, so that a schedule needs few of the once-a-second chores of a client; their proportions are the usual ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What the application does from one entry into its loop to the next.

    Attributes:
        take: So many events are handled before it does it, the last of them is then in hand; None: none of it counts, `at` does.
        do: "die" loses the process, "close" ends the client in good order; the others stay in it and enter the loop again.
        at: "die": after so many seconds instead.
        reached: "die": so many of the journal's queued writes still reach the disk.
    """

    take: int | None = 0
    do: Literal["die", "close", "break", "raise", "detach"] = "break"
    at: float = 0.0
    reached: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One run, its server's and journal's faults, and the lives of its application; after the last life it follows to the end."""

    seed: int = 0
    jitter: float | None = None
    beats: tuple[Beat, ...] = ()
    legs: tuple[Leg, ...] = ()
    creates: tuple[Trip, ...] = ()
    statuses: tuple[Trip, ...] = ()
    snapshots: tuple[Trip, ...] = ()
    lags: tuple[float, ...] = ()
    """Seconds that the journal takes for its writes, in turn; () for none at all."""
    failures: frozenset[int] = frozenset()
    """The commits that find the disk full, counted over all lives."""
    lives: tuple[Life, ...] = ()
    on_gap: OnGap = "raise"
    buffered: int = 1_000

    @property
    def policy(self) -> Policy:
        """The client's policy."""
        return POLICY if self.buffered == POLICY.max_buffered_events else _SMALL


_SMALL = Policy(**{name: getattr(POLICY, name) for name in POLICY.__slots__} | {"max_buffered_events": 2})  # type: ignore[arg-type]

PAYLOADS: tuple[tuple[str, Any], ...] = (
    ("message.delta", None),
    ("message.delta", {"message_id": "m2", "index": 0, "text": "né \U0001f600\u2028b"}),
    ("message.completed", {"message_id": "m1", "role": "assistant", "text": "one\ntwo\r\nthree"}),
    ("tool.call", {"call_id": "c1", "operation_id": "o1", "tool": "pay", "arguments": {"cents": 41}}),
    ("tool.result", {"call_id": "c1", "operation_id": "o1", "result": None}),
    ("status", {"text": "…"}),
    ("vendor.thing", {"x": ["\x00", "", 1.5, True], "id": "not an id"}),
)
CLOSINGS = ("max_age", "draining", "slow_consumer", "maintenance")


def schedule_from(rng: random.Random) -> Schedule:
    """Draw a schedule."""
    events = rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 12, 24))
    beats = [_beat(rng) for _ in range(events)]
    happenings = rng.randint(0, 9) >= 8
    if happenings:
        for _ in range(rng.randint(1, 2)):
            beats.insert(rng.randint(0, len(beats)), _happening(rng))
    beats.append(Beat(after=rng.choice((0.0, 0.4, 3.0)), do="end", data={"n": events}))
    storm = rng.randint(0, 9) == 9
    late = rng.randint(0, 2) == 2 and not storm
    legs = _legs(rng)
    if storm:
        # Connections that open and close at once, one after the other: the waits must grow.
        legs = (*legs[:1], *[Leg(cut=rng.choice(((1, 0), (0, 0), (1, 7))))] * rng.randint(2, 6))
    return Schedule(
        seed=rng.randint(0, 999),
        jitter=1.0 if storm else rng.choice((1.0, None, 0.0)),
        beats=tuple(beats),
        legs=legs,
        creates=tuple(_trip(rng, create=True) for _ in range(rng.choice((0, 0, 0, 1, 2)))),
        statuses=tuple(_trip(rng) for _ in range(rng.choice((0, 0, 1, 3)))),
        snapshots=tuple(_trip(rng) for _ in range(rng.choice((0, 1, 2)) if happenings else 0)),
        lags=tuple(rng.choice((0.0, 0.02, 0.3, 2.0)) for _ in range(rng.randint(1, 4))) if late else (),
        failures=frozenset(rng.randint(1, 6) for _ in range(rng.choice((0, 0, 0, 1, 2)))),
        lives=tuple(_life(rng) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))),
        on_gap=rng.choice(("raise", "snapshot", "continue")) if happenings else "raise",
        buffered=rng.choice((1_000, 1_000, 1_000, 2)),
    )


def _beat(rng: random.Random) -> Beat:
    type_, data = PAYLOADS[rng.choice((0, 0, 0, 1, 2, 3, 4, 5, 6))]
    return Beat(after=rng.choice((0.0, 0.0, 0.0, 0.0, 0.1, 0.1, 0.7, 4.0, 9.0)), type=type_, data=data)


def _happening(rng: random.Random) -> Beat:
    return Beat(
        after=rng.choice((0.0, 0.5)),
        do=rng.choice(("trim", "rotate", "lose")),
        count=rng.randint(0, 4),
        tell=rng.choice((True, False)),
    )


def _legs(rng: random.Random) -> tuple[Leg, ...]:
    """Draw plans for attaches. Of what may happen only once, each happens once at most."""
    once = {"denied", "missing", "skip", "foreign", "foreign again"}
    legs = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 6))):
        kind = rng.choice(
            (
                "cut",
                "cut",
                "cut",
                "cut",
                "again",
                "again",
                "busy",
                "closing",
                "none",
                *sorted(once),
                "lost",
                "silent",
                "bare",
            )
        )
        if kind in {"denied", "missing", "skip", "foreign", "foreign again"}:
            if kind not in once:
                kind = "cut"
            once.discard(kind)
        legs.append(_leg(rng, kind))
    return tuple(legs)


def _leg(rng: random.Random, kind: str) -> Leg:
    cut = (rng.choice((1, 2, 3, 0, 4, 6, 9)), rng.choice((0, 0, 1, 9, 60, 200)))
    how: How = rng.choice(("fin", "reset", "stall", "hold"))
    if how == "hold":
        cut = (cut[0], 0)  # what passes bytes in order and goes on can only stop between two blocks
    read = rng.choice((0, 0, 0, 400, 97, 31))
    delay = rng.choice((0.0, 0.0, 0.0, 0.2, 2.0))
    match kind:
        case "again":
            return Leg(again=rng.randint(1, 5), cut=rng.choice((None, cut)), how=how, read=read, delay=delay)
        case "busy":
            status = rng.choice((503, 429, 408, 425, 500, 502))
            return Leg(
                refuse=status, code=rng.choice((None, "overloaded")), retry_after=rng.choice((None, 0.0, 1.0, 6.0))
            )
        case "denied":
            return Leg(refuse=401, code="unauthenticated")
        case "missing":
            return Leg(refuse=404, code=rng.choice(("run_not_found", None)))
        case "none":
            return Leg(refuse=204)
        case "foreign" | "foreign again":
            return Leg(content_type="text/html", delay=delay)
        case "closing":
            return Leg(cut=(max(1, cut[0]), 0), closing=rng.choice(CLOSINGS), read=read)
        case "skip":
            return Leg(skip=rng.randint(1, 2), read=read)
        case "lost":
            return Leg(lost=True, delay=delay)
        case "silent":
            return Leg(delay=None)
        case "bare":
            return Leg(attached=False, cut=rng.choice((None, (max(1, cut[0]), cut[1]))), how=how, read=read)
        case _:
            return Leg(cut=cut, how=how, read=read, delay=delay)


def _trip(rng: random.Random, *, create: bool = False) -> Trip:
    match rng.choice(("late", "after", "before", "busy", "never")):
        case "late":
            return Trip(delay=rng.choice((0.1, 0.9, 2.9)))
        case "after":
            return Trip(lost="after")
        case "before":
            return Trip(lost="before")
        case "busy":
            return Trip(refuse=rng.choice((503, 429, 500)), retry_after=rng.choice((None, 2.0)))
        case _:
            return Trip(delay=None)


def _life(rng: random.Random) -> Life:
    do = rng.choice(("die", "die", "die", "break", "raise", "detach", "close"))
    reached = rng.randint(0, 3)
    if do == "die" and rng.randint(0, 1):
        return Life(take=None, do="die", at=rng.choice((0.0, 0.01, 0.15, 0.8, 2.5, 7.0)), reached=reached)
    return Life(take=rng.randint(0, 6), do=do, reached=reached)
