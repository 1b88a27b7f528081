"""Soak and sim: random schedules, each from a seed of its own, so that one of a million can be played again alone.

The seed is the schedule: `drawn_schedule(seed)` gives the same value for ever within one version of this package. `soak` draws
what a real network, a gate and real processes can do; `sim` draws all, and deaths, store failures, epochs and retention more
often.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Literal

from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.fits import directions, places
from reattach_chaos.schedules.multiplicity import Multiplicity, multiplied, possible
from reattach_chaos.schedules.place import Place
from reattach_chaos.schedules.schedule import ROUTES, Planned, Route, Schedule, at
from reattach_chaos.schedules.settings import drawn
from reattach_chaos.schedules.shape import CANONICAL, Shape

MOST_FAULTS = 4

_WEIGHTS = {
    "soak": {Fault.FIN: 6, Fault.RST: 6, Fault.STALL: 2, Fault.KILL: 3},
    "sim": {Fault.FIN: 4, Fault.RST: 4, Fault.STALL: 3, Fault.KILL: 6, Fault.STORE_FAILURE: 4, Fault.SERVER_RESTART: 3,
            Fault.NEW_EPOCH: 2, Fault.EXPIRE: 2, Fault.SUSPEND: 2, Fault.DUPLICATE: 3,
            Fault.EARLY_END: 2},
}  # fmt: skip
_HOW_MANY = {"soak": (1, 1, 1, 1), "sim": (6, 4, 1, 1)}
_ROUTE_WEIGHTS = (2, 12, 2, 1, 1, 1)
_NOT_SOAK = frozenset({Fault.NO_ROUTE, Fault.SUSPEND})


def soak(seed: int, shape: Shape = CANONICAL, *, scenario: str = "session") -> Iterator[Schedule]:
    """Yield random schedules without end; the first has the seed, each further one the next number."""
    return _stream(seed, "soak", shape, scenario)


def sim(seed: int, shape: Shape = CANONICAL, *, scenario: str = "session") -> Iterator[Schedule]:
    """Yield random schedules for the simulation without end; see `soak`."""
    return _stream(seed, "sim", shape, scenario)


def _stream(seed: int, sample: Literal["soak", "sim"], shape: Shape, scenario: str) -> Iterator[Schedule]:
    while True:
        yield drawn_schedule(seed, sample, shape, scenario=scenario)
        seed += 1


def drawn_schedule(
    seed: int, sample: Literal["soak", "sim"] = "sim", shape: Shape = CANONICAL, *, scenario: str = "session"
) -> Schedule:
    """Return the schedule of a seed."""
    chance = random.Random(seed)
    faults: list[Planned] = []
    # Most simulated cases are about one run or two: short ones find as much each, and there are more of them in a second.
    runs = list(range(1, len(shape.runs) + 1))
    if sample == "sim":
        begin = chance.choices(runs, range(len(runs), 0, -1))[0]
        runs = runs[begin - 1 : chance.randint(begin, len(runs))] if chance.random() < 0.3 else [begin]
    streams = dict.fromkeys(range(1, len(shape.runs) + 1), 0)  # the how manyth stream of a run is cut next
    for _ in range(chance.choices(range(1, MOST_FAULTS + 1), _HOW_MANY[sample])[0]):
        planned = drawn_fault(chance, sample, shape, streams, runs)
        multiplicity = chance.choices((Multiplicity.ONCE, chance.choice(possible(planned))), (3, 1))[0]
        faults += multiplied(planned, multiplicity, shape)
        if planned.route == "stream":
            streams[planned.at.run] += 1
    return Schedule(id=f"{sample}-seed-{seed}", seed=seed, scenario=scenario, faults=tuple(faults))


def drawn_fault(
    chance: random.Random, sample: Literal["soak", "sim"], shape: Shape, streams: dict[int, int], runs: Sequence[int]
) -> Planned:
    """Return one fault by chance.

    Args:
        chance: The source.
        sample: Which weights.
        shape: The runs.
        streams: For each run, how many of its streams are taken by earlier faults: a cut comes on the next one.
        runs: The runs that one of which it concerns.
    """
    kinds = [fault for fault in Fault if sample == "sim" or fault not in _NOT_SOAK]
    fault = chance.choices(kinds, [_WEIGHTS[sample].get(each, 1) for each in kinds])[0]
    route: Route | None = chance.choices(ROUTES, _ROUTE_WEIGHTS)[0]
    if not places(fault, route) or (places(fault, None) and chance.random() < 0.5):
        route = None if places(fault, None) else "stream"
    place = chance.choice(places(fault, route))
    run = chance.choice(runs)
    event = chance.randint(1, len(shape.runs[run - 1])) if place.of_event else None
    return Planned(
        fault=fault,
        at=at(
            place,
            event,
            run=run,
            offset=chance.randrange(0, 2000) if place is Place.OFFSET else None,
            width=chance.randint(2, 4) if place is Place.IN_CHARACTER else None,
        ),
        route=route,
        nth=streams[run] + 1 if route == "stream" else 1,
        direction=chance.choice(directions(fault, place)),
        settings=drawn(fault, chance),
    )
