"""`Cuts`: the schedule's faults of requests, and which of them are due at which request and at which mark of it.

Streams and statuses are counted by run, runs by the order in which they are first named; creates by their key, so that a repeated
create is the second request for its run; all others over the whole session. Nothing here touches a socket.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from reattach_chaos.gate.marks import Mark
from reattach_chaos.gate.numbering import Numbering
from reattach_chaos.history.wire import Route
from reattach_chaos.schedules import Fault, Place, Planned, Position, Schedule


@dataclass(frozen=True, slots=True)
class Cut:
    """One fault of the schedule with its number there, from 1."""

    number: int
    planned: Planned


@dataclass(slots=True)
class Exchange:
    """One request and its answer, with the cuts that are still to come on it.

    Attributes:
        route: What the request is for.
        run: The run's id; None where none is named, or not yet.
        nth: Its number among the requests of its route and run, from 1.
        cuts: Planned on this request and not done yet, in the schedule's order.
        after: The cursor that a stream was asked after.
    """

    route: Route = "other"
    run: str | None = None
    nth: int = 1
    cuts: list[Cut] = field(default_factory=list)
    after: str | None = None
    method: str = "GET"

    def due(self, mark: Mark) -> Cut | None:
        """Take and return the first cut whose place this mark is; None for none."""
        return self.take(lambda planned: meets(planned.at, mark))

    def at(self, *places: Place) -> Cut | None:
        """Take and return the first cut at one of these places; None for none."""
        return self.take(lambda planned: planned.at.place in places)

    def offsets(self) -> Iterable[int]:
        """Return the byte offsets of the answer at which something is planned."""
        return sorted(cut.planned.at.offset or 0 for cut in self.cuts if cut.planned.at.place is Place.OFFSET)

    def take(self, wanted: Callable[[Planned], bool]) -> Cut | None:
        """Take and return the first cut of which this is true; None for none."""
        for cut in self.cuts:
            if wanted(cut.planned):
                self.cuts.remove(cut)
                return cut
        return None


def meets(position: Position, mark: Mark) -> bool:
    """Whether a mark is the place of a position. An event that does not come is met at the first later one."""
    place = Place.AFTER_EVENT if position.place in (Place.IN_REPLAY, Place.IDLE) else position.place
    if mark.place is not place or (position.place is Place.IN_REPLAY and not mark.replay):
        return False
    if position.event is not None and (mark.number or 0) < position.event:
        return False
    return position.width in (None, mark.width) and position.offset == mark.offset


class Cuts:
    """A schedule's faults of requests, while it is played.

    Args:
        schedule: The plan. Faults at the client's and the server's own places are not the gate's.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.all = [Cut(number, planned) for number, planned in enumerate(schedule.faults, 1) if planned.route]
        self._runs: list[str] = []
        self._keys: list[str] = []
        self._numberings: dict[str | None, Numbering] = {}
        self._requests: Counter[tuple[Route, int]] = Counter()
        self.fired: Counter[int] = Counter()
        """How often each fault was done, by its number."""
        self.missed: set[int] = set()
        """The faults of which it was said that they could not be done."""

    def name_run(self, run: str) -> int:
        """Return a run's number in the session, from 1; a run that was not named before gets the next."""
        if run not in self._runs:
            self._runs.append(run)
        return self._runs.index(run) + 1

    def numbering(self, run: str | None) -> Numbering:
        """Return the numbers of a run's events."""
        return self._numberings.setdefault(run, Numbering())

    def next_end(self) -> Fault | None:
        """Return the kind, FIN or RST, of the next cut that is still to come, in the schedule's order; None for none."""
        for cut in self.all:
            planned = cut.planned
            left = planned.nth == "every" or self.fired[cut.number] < planned.times
            if left and planned.fault in (Fault.FIN, Fault.RST) and cut.number not in self.missed:
                return planned.fault
        return None

    def begin(self, route: Route, run: str | None, key: str | None, after: str | None, method: str) -> Exchange:
        """Count a request; return it with the cuts that are planned on it."""
        number = 0  # of no run that is told: counted over all
        if run is not None:
            named = self.name_run(run)
            number = named if route in ("stream", "status", "snapshot") else 0
        elif route == "create" and key:
            if key not in self._keys:
                self._keys.append(key)
            number = self._keys.index(key) + 1
        self._requests[route, number] += 1
        nth = self._requests[route, number]
        due = [cut for cut in self.all if _is_on(cut.planned, route, number, nth)]
        return Exchange(route, run, nth, due, after, method)


def _is_on(planned: Planned, route: Route, run: int, nth: int) -> bool:
    if planned.route != route or (run and planned.at.run != run):
        return False
    return planned.nth == "every" or planned.nth <= nth < planned.nth + planned.times
