"""`Plans`: which planned fault is due where. Asked by the network, the server, the disk and the application.

A fault of a request is due on the nth request of its route (and run), and on `times` of them; one of the client or of the server
is due once, at its event or at the first later one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from reattach_chaos.history import CutFired, CutMissed, CutPlanned
from reattach_chaos.schedules import Planned, Schedule
from reattach_chaos.schedules.place import Place
from reattach_chaos.schedules.shape import CANONICAL
from reattach_chaos.sim.scribe import Scribe


@dataclass(slots=True, eq=False)
class Plan:
    """One fault of the schedule.

    Attributes:
        cut: Its number in the schedule, from 1.
        planned: The fault.
        fired: Whether it came, at least once.
        spent: It does not come again.
        missed: It was due and could not be done.
    """

    cut: int
    planned: Planned
    fired: bool = False
    spent: bool = False
    missed: bool = False

    @property
    def place(self) -> Place:
        """Where it comes."""
        return self.planned.at.place


class Plans:
    """All faults of a schedule.

    Args:
        schedule: The schedule.
        scribe: Who writes down that one fired.
    """

    def __init__(self, schedule: Schedule, scribe: Scribe) -> None:
        self._scribe = scribe
        self._all = [Plan(cut, planned) for cut, planned in enumerate(schedule.faults, 1)]
        self._own = [plan for plan in self._all if plan.planned.route is None]
        self._on_requests = [plan for plan in self._all if plan.planned.route is not None]
        for plan in self._all:
            at = plan.planned.at
            kind = CANONICAL.kind(at.run, at.event) if at.event is not None else None
            scribe.write(
                CutPlanned,
                who="gate",
                cut=plan.cut,
                fault=str(plan.planned.fault),
                position=str(at.place),
                phase=plan.planned.phase,
                direction=plan.planned.direction,
                event_kind=kind or "",
                sequence=at.event,
                offset=at.offset,
            )

    def on_request(self, route: str, run: int, nth: int) -> list[Plan]:
        """Return the faults of this request.

        Args:
            route: Of the request.
            run: The run's number in the session; only streams, statuses and creates are told apart by it.
            nth: The request's number among those, from 1.
        """
        return [plan for plan in self._on_requests if _meant(plan.planned, route, run, nth)]

    def due(self, place: Place, run: int, event: int) -> Iterator[Plan]:
        """Yield the faults of the client's or the server's own that are due at this event, each once."""
        for plan in self._own:
            at = plan.planned.at
            if not plan.spent and at.place is place and at.run == run and at.event is not None and event >= at.event:
                plan.spent = True
                yield plan

    def fire(self, plan: Plan, *, run: str | None = None, conn: int | None = None, around: str = "") -> None:
        """A fault comes now."""
        plan.fired = True
        self._scribe.write(
            CutFired,
            who="gate",
            run=run,
            conn=conn,
            cut=plan.cut,
            fault=str(plan.planned.fault),
            position=str(plan.place),
            sequence=plan.planned.at.event,
            around=around,
        )

    def miss(self, plan: Plan, reason: str) -> None:
        """A fault was due, and could not be done."""
        if not plan.fired and not plan.missed:
            plan.missed = True
            self._scribe.write(CutMissed, who="gate", cut=plan.cut, reason=reason)

    def any_of(self, *faults: str) -> bool:
        """Whether a fault of these words is planned."""
        return any(str(plan.planned.fault) in faults for plan in self._all)

    def any_on(self, route: str) -> bool:
        """Whether a fault is planned on this route."""
        return any(plan.planned.route == route for plan in self._all)

    def any_at(self, place: Place) -> bool:
        """Whether a fault is planned at this place."""
        return any(plan.place is place for plan in self._all)


def _meant(planned: Planned, route: str, run: int, nth: int) -> bool:
    theirs: str | None = planned.route
    if theirs == "create" and planned.at.run == 3:
        theirs = "answer"  # the session's third run is made by the answer to the second
    if theirs != route or (route in ("create", "stream", "status") and planned.at.run != run):
        return False
    return planned.nth == "every" or planned.nth <= nth < planned.nth + planned.times
