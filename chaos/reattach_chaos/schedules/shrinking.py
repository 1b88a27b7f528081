"""Shrinking: from a schedule that fails to a smaller one that still does.

Smaller is: fewer faults; a shorter run; a fault once instead of often; a position at the nearest boundary; FIN instead of RST;
the usual settings. Each step is tried by the caller, who plays it; the first that still fails is gone on from. Pure: `shrinks`
only proposes, `Shrinking` knows how far it has come.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Self

from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.fits import objection
from reattach_chaos.schedules.place import IN_EVENT, ON_REQUEST, Place
from reattach_chaos.schedules.schedule import Planned, Schedule
from reattach_chaos.schedules.settings import usual

MOST_TRIES = 200


class Shrinking:
    """Hands out smaller schedules in turn, until none is left; for callers who await what they play, `shrink` else.

    Args:
        schedule: One that fails.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.smallest = schedule
        """The smallest that is known to fail."""
        self._left = shrinks(schedule)

    def __iter__(self) -> Self:
        """Return itself."""
        return self

    def __next__(self) -> Schedule:
        """Return what to play next."""
        return next(self._left)

    def failed(self, schedule: Schedule) -> None:
        """Go on from this one: it still fails."""
        self.smallest = schedule
        self._left = shrinks(schedule)


def shrink(schedule: Schedule, fails: Callable[[Schedule], bool], *, most: int = MOST_TRIES) -> Schedule:
    """Return the smallest schedule found that still fails.

    Args:
        schedule: One that fails.
        fails: Plays a schedule; whether it fails in the same way.
        most: So many are played at most.
    """
    search = Shrinking(schedule)
    for candidate in islice(search, most):
        if fails(candidate):
            search.failed(candidate)
    return search.smallest


def shrinks(schedule: Schedule) -> Iterator[Schedule]:
    """Yield smaller schedules, the boldest first. All of them are valid, and none of them leads back."""
    faults = schedule.faults
    if len(faults) > 2:
        half = len(faults) // 2
        yield schedule.with_faults(faults[:half])
        yield schedule.with_faults(faults[half:])
    for place in range(len(faults)):
        yield schedule.with_faults(faults[:place] + faults[place + 1 :])
    for shorter in _shorter(schedule.scenario):
        yield replace(schedule, scenario=shorter)
    for place, planned in enumerate(faults):
        for smaller in _smaller(planned):
            if objection(smaller) is None:
                yield schedule.with_faults((*faults[:place], smaller, *faults[place + 1 :]))


def _shorter(scenario: str | Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield shorter scripts: without one half of the steps, and without one step. A script that is only named stays as it is."""
    steps = scenario.get("steps") if isinstance(scenario, Mapping) else None
    if not isinstance(scenario, Mapping) or not isinstance(steps, list):
        return
    half = len(steps) // 2
    if half > 1:
        yield {**scenario, "steps": steps[half:]}
        yield {**scenario, "steps": steps[:half]}
    for place in range(len(steps) if len(steps) > 1 else 0):
        yield {**scenario, "steps": steps[:place] + steps[place + 1 :]}


def _smaller(planned: Planned) -> Iterator[Planned]:
    position = planned.at
    if planned.nth == "every":
        yield replace(planned, nth=1)
    if planned.times > 1:
        yield replace(planned, times=1)
    if position.run > 1:
        yield replace(planned, at=replace(position, run=1))
    if position.event is not None and position.event > 1:
        if position.event > 2:
            yield replace(planned, at=replace(position, event=position.event // 2))
        yield replace(planned, at=replace(position, event=position.event - 1))
    if position.place in IN_EVENT and position.place is not Place.BEFORE_BLANK_LINE:
        yield replace(planned, at=replace(position, place=Place.BEFORE_BLANK_LINE, width=None))
    if position.place is Place.BEFORE_BLANK_LINE:
        yield replace(planned, at=replace(position, place=Place.AFTER_EVENT))
    if position.place in ON_REQUEST and position.place not in (Place.AFTER_REQUEST, Place.CONNECTING):
        yield replace(planned, at=replace(position, place=Place.AFTER_REQUEST), direction="downstream")
    if position.offset is not None and position.offset > 0:
        yield replace(planned, at=replace(position, offset=position.offset // 2))
    if planned.fault is Fault.RST:
        yield replace(planned, fault=Fault.FIN)
    if planned.direction != "downstream":
        yield replace(planned, direction="downstream")
    if dict(planned.settings) != usual(planned.fault):
        yield replace(planned, settings=usual(planned.fault))
