"""Who plays: the followers of the one run, the lane of the gate that each goes through, and where each is killed.

Pure. FIN and RST cost a reconnect, so two followers take turns: while one comes back, the other is at the next event. A stall costs
an idle limit, so more of them share the boundaries. One more starts the run, loses the answer to that, and is killed; the others
attach by the run's id.
"""

import random
from dataclasses import dataclass
from typing import Any, Literal

KILLS = 5
EVENTS_A_STALLER = 14  # so many idle limits, one after the other, are the longest wait of the demo
LEAST_STALLERS, MOST_STALLERS = 3, 12
FIRST_KILL = 2


@dataclass(frozen=True, slots=True)
class Hold:
    """Be killed with this event in hand: just after it was shown, or just before."""

    sequence: int
    when: Literal["after", "before"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One follower. `starts`: it creates the run, the others attach to it. `holds`: one for each kill, in order."""

    who: str
    lane: str
    starts: bool = False
    holds: tuple[Hold, ...] = ()


def cast(events: int, seed: int, *, naive: bool = False) -> tuple[Part, ...]:
    """Return the followers for a run of at least so many events.

    A naive client ends at the first fault, so one of each kind shows all that can be seen.
    """
    sharing = {"fin": 1, "rst": 1, "stall": 1}
    if not naive:
        sharing = {"fin": 2, "rst": 2, "stall": max(LEAST_STALLERS, min(MOST_STALLERS, events // EVENTS_A_STALLER))}
    parts = [Part(who="kill -9", lane="kill", starts=True, holds=_holds(events, seed))]
    for lane, number in sharing.items():
        name = lane if lane == "stall" else lane.upper()
        parts += [Part(who=f"{name} {each}" if number > 1 else name, lane=lane) for each in range(1, number + 1)]
    return tuple(parts)


def _holds(events: int, seed: int) -> tuple[Hold, ...]:
    places = range(FIRST_KILL, events)  # not at the last event: a client that has all is gone before it can be killed
    chosen = sorted(random.Random(f"kills {seed}").sample(places, min(KILLS, len(places))))
    # The last time the event has come and is not shown yet: at the next start it comes again, and is shown once.
    return tuple(Hold(sequence, "before" if sequence == chosen[-1] else "after") for sequence in chosen)


def gate_plan(seed: int) -> dict[str, Any]:
    """Return the gate's plan: every boundary once with each fault, and the first create's answer lost."""
    every = [
        {"name": fault, "cuts": [{"route": "stream", "after": "every", "fault": fault}]}
        for fault in ("fin", "rst", "stall")
    ]
    kill = {"name": "kill", "cuts": [{"route": "create", "nth": 1, "fault": "lose"}]}
    return {"gate": "plan/1", "seed": seed, "lanes": [*every, kill]}
