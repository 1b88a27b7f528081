"""Hypothesis strategies for schedules: some hundreds of examples, and Hypothesis' own shrinking. Needs `hypothesis`.

Volume comes from `soak.sim`, a plain generator, which is a hundred times as fast.
"""

from hypothesis import strategies as st

from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.fits import directions, places
from reattach_chaos.schedules.multiplicity import multiplied, possible
from reattach_chaos.schedules.place import Place
from reattach_chaos.schedules.schedule import ROUTES, Planned, Route, Schedule, at
from reattach_chaos.schedules.settings import usual
from reattach_chaos.schedules.shape import CANONICAL, Shape

_WAYS: list[Route | None] = ["stream", None, *(route for route in ROUTES if route != "stream")]


@st.composite
def planned_faults(draw: st.DrawFn, shape: Shape = CANONICAL, faults: tuple[Fault, ...] = tuple(Fault)) -> Planned:
    """One fault where it can come; it shrinks to a FIN on the first stream of the first run."""
    fault = draw(st.sampled_from(faults))
    route = draw(st.sampled_from([route for route in _WAYS if places(fault, route)]))
    place = draw(st.sampled_from(places(fault, route)))
    run = draw(st.integers(1, len(shape.runs)))
    return Planned(
        fault=fault,
        at=at(
            place,
            draw(st.integers(1, len(shape.runs[run - 1]))) if place.of_event else None,
            run=run,
            offset=draw(st.integers(0, 2000)) if place is Place.OFFSET else None,
            width=draw(st.integers(2, 4)) if place is Place.IN_CHARACTER else None,
        ),
        route=route,
        nth=draw(st.integers(1, 3)) if route == "stream" else 1,
        direction=draw(st.sampled_from(directions(fault, place))),
        settings=usual(fault),
    )


@st.composite
def schedules(
    draw: st.DrawFn, shape: Shape = CANONICAL, faults: tuple[Fault, ...] = tuple(Fault), most: int = 4
) -> Schedule:
    """A schedule of at most so many faults, each as often as it can come."""
    chosen: list[Planned] = []
    for planned in draw(st.lists(planned_faults(shape, faults), max_size=most)):
        chosen += multiplied(planned, draw(st.sampled_from(possible(planned))), shape)
    return Schedule(id="drawn", seed=draw(st.integers(0, 2**32 - 1))).with_faults(tuple(chosen))
