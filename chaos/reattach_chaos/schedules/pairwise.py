"""Pairwise: few schedules in which each pair of values of two axes comes together at least once, wherever it can at all.

Axes: fault, place, phase, direction, multiplicity, event kind. The combinations are enumerated by `fits` and covered greedily:
for each pair that is left some combinations that hold it are compared, and the one with most such pairs is taken. Which ones are
compared is the seed's.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.fits import directions, places
from reattach_chaos.schedules.multiplicity import Multiplicity, multiplied, possible
from reattach_chaos.schedules.place import Place
from reattach_chaos.schedules.quick import before
from reattach_chaos.schedules.schedule import ROUTES, Planned, Route, Schedule, at
from reattach_chaos.schedules.settings import usual
from reattach_chaos.schedules.shape import CANONICAL, Shape

LOOKED_AT = 25
"""So many combinations are compared for each pair that is left: more make fewer schedules, and take longer."""


@dataclass(frozen=True, slots=True)
class Combination:
    """One point of the axes, as a fault."""

    planned: Planned
    multiplicity: Multiplicity
    event_kind: str

    def values(self) -> tuple[str, ...]:
        """Return its value on each axis."""
        planned = self.planned
        return (
            planned.fault,
            planned.at.place,
            f"phase {planned.phase}",
            planned.direction,
            self.multiplicity,
            f"kind {self.event_kind}",
        )

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each pair of its values."""
        return combinations(self.values(), 2)


def pairwise(shape: Shape = CANONICAL, *, seed: int = 0, scenario: str = "session") -> list[Schedule]:
    """Return schedules that hold every possible pair of values."""
    chance = random.Random(seed)
    empty = Schedule(id="no-fault", seed=seed, scenario=scenario)
    every = list(all_combinations(shape))
    chance.shuffle(every)
    holding: dict[tuple[str, str], list[Combination]] = {}
    for each in every:
        for pair in each.pairs():
            holding.setdefault(pair, []).append(each)
    left = dict.fromkeys(holding)  # a set would not keep the order, and so not the seed's
    chosen: list[Combination] = []
    while left:
        some = holding[next(iter(left))][:LOOKED_AT]
        best = max(some, key=lambda each: sum(pair in left for pair in each.pairs()))
        chosen.append(best)
        for pair in best.pairs():
            left.pop(pair, None)
    return [empty.with_faults(schedule_of(each, shape)) for each in chosen]


def schedule_of(combination: Combination, shape: Shape) -> tuple[Planned, ...]:
    """Return the faults of a combination; a fault on a resume comes after a cut that makes one."""
    planned = combination.planned
    faults = multiplied(planned, combination.multiplicity, shape)
    if planned.phase == "resume" and combination.multiplicity is not Multiplicity.EVERY:
        return before(planned.at.event or 2, planned.at.run), *faults
    return faults


def all_combinations(shape: Shape) -> Iterator[Combination]:
    """Yield every possible combination, in the order of the tables."""
    events = {kind: (run, event) for run, event, kind in shape.events()}
    ways: list[tuple[Route | None, int]] = [(None, 1), *((route, 1) for route in ROUTES), ("stream", 2)]
    for fault in Fault:
        for route, nth in ways:
            for place in places(fault, route):
                for kind, (run, event) in events.items() if place.of_event else [("", (1, 0))]:
                    for direction in directions(fault, place):
                        planned = Planned(
                            fault=fault,
                            at=at(
                                place,
                                event or None,
                                run=run,
                                offset=1 if place is Place.OFFSET else None,
                                width=4 if place is Place.IN_CHARACTER else None,
                            ),
                            route=route,
                            nth=nth,
                            direction=direction,
                            settings=usual(fault),
                        )
                        for multiplicity in possible(planned):
                            yield Combination(planned, multiplicity, kind)
