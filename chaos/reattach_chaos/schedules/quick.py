"""The quick sample: every boundary and every request, 160 cases for the canonical session.

Each event of each run: just before its blank line, just after it, and, for the last, between it and the end of the body; each
with FIN, RST and silence; each on the first stream and on a resume. For each kind of request: the request lost, its answer lost.
And a stream that ends in good order before its run does, which is the end of nothing.
"""

from collections.abc import Iterator
from dataclasses import replace

from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.place import Place
from reattach_chaos.schedules.schedule import ROUTES, Planned, Route, Schedule, at
from reattach_chaos.schedules.shape import CANONICAL, Shape

CUTS = (Fault.FIN, Fault.RST, Fault.STALL)


def quick(shape: Shape = CANONICAL, *, seed: int = 0, scenario: str = "session") -> list[Schedule]:
    """Return the quick sample's schedules, in the order of the events."""
    empty = Schedule(id="no-fault", seed=seed, scenario=scenario)
    return [empty.with_faults(faults) for faults in (*_boundaries(shape), *_requests(), *_clean_ends())]


def _boundaries(shape: Shape) -> Iterator[tuple[Planned, ...]]:
    for run, event, _ in shape.events():
        last = event == len(shape.runs[run - 1])
        places = [at(Place.BEFORE_BLANK_LINE, event, run=run)]
        places.append(at(Place.AFTER_TERMINAL, run=run) if last else at(Place.AFTER_EVENT, event, run=run))
        for place in places:
            for fault in CUTS:
                yield (Planned(fault=fault, at=place),)
                yield before(event, run), Planned(fault=fault, at=place, nth=2)


def before(event: int, run: int = 1) -> Planned:
    """Return the cut that makes the next stream of the run a resume which still has this event before it."""
    place = at(Place.AFTER_EVENT, event - 1, run=run) if event > 1 else at(Place.AFTER_HEAD, run=run)
    return Planned(fault=Fault.FIN, at=place)


def _requests() -> Iterator[tuple[Planned, ...]]:
    ways: list[tuple[Route, int]] = [(route, 1) for route in ROUTES]
    for route, nth in [*ways, ("stream", 2)]:
        first = (before(2),) if nth == 2 else ()
        lost = Planned(fault=Fault.FIN, at=at(Place.IN_REQUEST_HEAD), route=route, nth=nth, direction="upstream")
        yield *first, lost
        yield *first, Planned(fault=Fault.FIN, at=at(Place.AFTER_REQUEST), route=route, nth=nth)


def _clean_ends() -> Iterator[tuple[Planned, ...]]:
    ended = Planned(fault=Fault.EARLY_END, at=at(Place.AFTER_EVENT, 2))
    yield (ended,)
    yield before(2), replace(ended, nth=2)
