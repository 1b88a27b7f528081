"""Every fault at every place where it can come is played, and the client keeps every law."""

import pytest

from reattach_chaos.history import CutFired
from reattach_chaos.schedules import Fault, Planned, Schedule, at
from reattach_chaos.schedules.fits import directions, places
from reattach_chaos.schedules.place import UPSTREAM_PLACES, Place
from reattach_chaos.schedules.schedule import ROUTES
from reattach_chaos.schedules.settings import usual
from reattach_chaos.sim import simulate

NEVER = {
    ("new-epoch", "create"): "there is no log before the create",
    ("expire", "create"): "there is no log before the create",
    ("new-epoch", "list"): "by then the client knows the end of every log",
    ("expire", "list"): "the request is of no run",
    ("new-epoch", "cancel"): "by then the client knows the end of the log",
    ("new-epoch", "answer"): "by then the client knows the end of the log",
}


def every(fault):
    """Yield a schedule for each place of a fault, on each route; of streams that idle, since some places need that."""
    for route in (*ROUTES, None):
        for place in places(fault, route):
            if (str(fault), route) in NEVER:
                continue
            event = 2 if place.of_event else None
            where = at(
                place,
                event,
                offset=400 if place is Place.OFFSET else None,
                width=3 if place is Place.IN_CHARACTER else None,
            )
            way = "upstream" if place in UPSTREAM_PLACES else directions(fault, place)[0]
            planned = Planned(fault=fault, at=where, route=route, direction=way, settings=usual(fault))
            yield Schedule(id="place", seed=IDLING).with_faults((planned,))


IDLING = 99
"""A seed with a long pause behind the second event of the first run."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", list(Fault), ids=str)
def test_a_fault_comes_wherever_it_can(fault):
    """It fires, and no law is broken."""
    silent = []

    def told(schedule, history, verdict):
        if not history.of(CutFired):
            silent.append(schedule.id)

    found = simulate(every(fault), told=told)
    assert not found.invalid, found.invalid
    assert found.played
    assert not silent
