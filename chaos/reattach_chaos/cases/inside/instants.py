"""`Instants`: the faults that come at a client's own instants (received, committed, delivered, applied, acknowledged), as an order.

Such an instant is seen by the client's own process alone. So a process of ours is given the faults as a word of its command
line (`watched_client.py`), does each of them to itself, and says so in a line of its own; no other client is asked to. Here is
what both sides share: which faults they are, and the word. Pure.
"""

import json
from dataclasses import dataclass
from typing import Any

from reattach_chaos.schedules import Fault, Place, Planned, Schedule
from reattach_chaos.schedules.settings import setting

STRUCK = "struck"
"""The kind of the line that says that a fault comes now: `{"kind":"struck","cut":1,"did":"killed"}`; `did` is a word of `DID`."""
WOKE = "woke"
"""The kind of the line that says that a process has seen the step of its clocks, and has done what was due."""
DID = ("killed", "failed", "lagged")
INNER = frozenset({Fault.KILL, Fault.STORE_FAILURE})
"""What is done at them."""


@dataclass(frozen=True, slots=True)
class Instant:
    """One fault at an instant of the client's own.

    Attributes:
        cut: Its number in the schedule.
        fault: A kill, or a store that fails or lags.
        place: The instant.
        event: Of this event of its run, or of the first later one.
        lag_ms: So long the store takes; 0: it fails. Of a kill 0.
        reason: Why it fails, a word of `STORE_REASONS`. Of a kill "".
    """

    cut: int
    fault: Fault
    place: Place
    event: int
    lag_ms: float
    reason: str


@dataclass(frozen=True, slots=True)
class Instants:
    """What one process of ours is to do to itself.

    Attributes:
        faults: The faults that have not come yet.
        clock: The file that says by how many seconds its clocks are ahead; "": they are the machine's.
    """

    faults: tuple[Instant, ...]
    clock: str = ""

    def word(self) -> str:
        """Return it as a word of a command line."""
        return json.dumps({"faults": [_told(each) for each in self.faults], "clock": self.clock})


def read_word(word: str) -> Instants:
    """Return what a word says."""
    told: dict[str, Any] = json.loads(word)
    faults = (
        Instant(cut, Fault(fault), Place(place), event, lag_ms, reason)
        for cut, fault, place, event, lag_ms, reason in told["faults"]
    )
    return Instants(tuple(faults), told["clock"])


def instants_of(schedule: Schedule, run: int) -> tuple[Instant, ...]:
    """Return the faults of a schedule at its client's own instants with a run of the session."""
    return tuple(
        Instant(
            number,
            planned.fault,
            planned.at.place,
            planned.at.event or 1,
            *_of_store(planned),
        )
        for number, planned in enumerate(schedule.faults, 1)
        if planned.fault in INNER and planned.at.run == run
    )


def are_inside(schedule: Schedule) -> bool:
    """Whether a case needs a process of ours that does things to itself: all but a kill behind a line, which everybody sees."""
    return any(
        each.fault is Fault.SUSPEND or (each.fault in INNER and not is_shown(each.fault, each.at.place))
        for each in schedule.faults
    )


def is_shown(fault: Fault, place: Place) -> bool:
    """Whether a fault comes behind a line of the client: any client can be killed there."""
    return fault is Fault.KILL and place is Place.DELIVERED


def _of_store(planned: Planned) -> tuple[float, str]:
    """Return how long a store takes, and why it fails."""
    if planned.fault is not Fault.STORE_FAILURE:
        return 0.0, ""
    return float(setting(planned, "lag_ms")), str(setting(planned, "reason"))


def _told(instant: Instant) -> list[Any]:
    return [
        instant.cut, instant.fault.value, instant.place.value, instant.event, instant.lag_ms, instant.reason
    ]  # fmt: skip
