"""`Multiplicity`: how often a fault comes, and the faults that this makes of one."""

from dataclasses import replace
from enum import StrEnum

from reattach_chaos.schedules.place import Place
from reattach_chaos.schedules.schedule import Planned
from reattach_chaos.schedules.shape import Shape


class Multiplicity(StrEnum):
    """How often a fault comes."""

    ONCE = "once"
    EVERY = "every-connection"
    TWICE = "twice-in-a-row"
    TWO_PLACES = "two-places"
    STORM = "storm-then-quiet"


STORM = 8
"""Requests in a row that a storm takes."""

_WITH_PROGRESS = frozenset({Place.AFTER_EVENT})


def possible(planned: Planned) -> tuple[Multiplicity, ...]:
    """Return how often a fault can come.

    On every connection only where each one gets one more event through, or where the fault ends nothing: else the case has no end.
    """
    if planned.route is None:
        return (Multiplicity.ONCE, Multiplicity.TWO_PLACES) if planned.at.event else (Multiplicity.ONCE,)
    often = [Multiplicity.ONCE, Multiplicity.TWICE, Multiplicity.STORM]
    settles = planned.at.place in (Place.AFTER_TERMINAL, Place.AFTER_TERMINATOR)
    if settles or planned.fault.traits.actor == "runner":
        return (Multiplicity.ONCE,)  # behind the end nothing comes again; a process and a log are struck once
    if planned.at.place in _WITH_PROGRESS or not (planned.fault.traits.cuts or _answers(planned)):
        often.append(Multiplicity.EVERY)
    if planned.at.event is not None:
        often.append(Multiplicity.TWO_PLACES)
    return tuple(often)


def multiplied(planned: Planned, multiplicity: Multiplicity, shape: Shape) -> tuple[Planned, ...]:
    """Return the faults that come of one, so often."""
    match multiplicity:
        case Multiplicity.ONCE:
            return (planned,)
        case Multiplicity.EVERY:
            return (replace(planned, nth="every"),)
        case Multiplicity.TWICE:
            return (replace(planned, times=2),)
        case Multiplicity.STORM:
            return (replace(planned, times=STORM),)
        case _:  # two places
            event, last = planned.at.event or 1, len(shape.runs[planned.at.run - 1])
            later = replace(planned.at, event=min(event + 2, last))
            nth = planned.nth + 1 if planned.nth != "every" and planned.route else planned.nth
            return (planned, replace(planned, at=later, nth=nth))


def _answers(planned: Planned) -> bool:
    return planned.at.place in (
        Place.AFTER_REQUEST,
        Place.CONNECTING,
        Place.IN_BACKOFF,
    ) and planned.fault.value not in (
        "latency",
        "trickle",
        "bandwidth",
        "slow-reader",
        "other-instance",
    )
