"""Shrinking: from a schedule that fails to a smaller one that still does.

Smaller is: fewer faults; a shorter run; a fault once instead of often; a position at the nearest boundary; FIN instead of RST;
the usual settings. Each step is tried by the caller, who plays it; the first that still fails is gone on from. Pure: `shrinks`
only proposes.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.fits import objection
from reattach_chaos.schedules.place import IN_EVENT, ON_REQUEST, Place
from reattach_chaos.schedules.schedule import Planned, Schedule
from reattach_chaos.schedules.settings import usual

MOST_TRIES = 200


def shrink(schedule: Schedule, fails: Callable[[Schedule], bool], *, most: int = MOST_TRIES) -> Schedule:
    """Return the smallest schedule found that still fails.

    Args:
        schedule: One that fails.
        fails: Plays a schedule; whether it fails in the same way.
        most: So many are played at most.
    """
    left = most
    smaller = True
    while smaller:
        smaller = False
        for candidate in shrinks(schedule):
            if left <= 0:
                return schedule
            left -= 1
            if fails(candidate):
                schedule, smaller = candidate, True
                break
    return schedule


def shrinks(schedule: Schedule) -> Iterator[Schedule]:
    """Yield smaller schedules, the boldest first. All of them are valid, and none of them leads back."""
    faults = schedule.faults
    if len(faults) > 2:
        half = len(faults) // 2
        yield schedule.with_faults(faults[:half])
        yield schedule.with_faults(faults[half:])
    for place in range(len(faults)):
        yield schedule.with_faults(faults[:place] + faults[place + 1 :])
    for place, planned in enumerate(faults):
        for smaller in _smaller(planned):
            if objection(smaller) is None:
                yield schedule.with_faults((*faults[:place], smaller, *faults[place + 1 :]))


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
