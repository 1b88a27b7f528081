"""What the quick sample has for the own instants of our clients: a handful of kills, of failures of a store, of sleep. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from reattach_chaos.cases.session import Session
from reattach_chaos.schedules import Fault, Place, Planned, Schedule, at

_KILLS = (
    (Place.RECEIVED, 1),
    (Place.COMMITTED, 1),
    (Place.APPLIED, 1),
    (Place.APPLIED, 3),
    (Place.ACKNOWLEDGED, 2),
)


def inner_faults(session: Session, seed: int, scenario: str) -> Iterator[Schedule]:
    """Yield a handful of cases that come at a client's own instants: it kills itself, its store fails or lags, it sleeps.

    The FIN makes that what comes behind it is committed by itself.
    """
    empty = Schedule(id="no-fault", seed=seed, scenario=scenario)
    whole = next((run for run, each in enumerate(session.runs, 1) if len(each.events) >= 4), 0)
    for run, each in enumerate(session.runs, 1):
        last = len(each.events)
        for place, event in _KILLS if run == whole else ((Place.RECEIVED, 1), (Place.COMMITTED, last)):
            yield empty.with_faults((_inner(Fault.KILL, place, event, run),))
    if not whole:
        return
    fin = Planned(fault=Fault.FIN, at=at(Place.AFTER_EVENT, 2, run=whole))
    for place in (Place.RECEIVED, Place.COMMITTED, Place.APPLIED):
        yield empty.with_faults((fin, _inner(Fault.KILL, place, 3, whole)))
    for settings in ({"reason": "full"}, {"reason": "io"}, {"reason": "locked"}, {"lag_ms": 300}):
        yield empty.with_faults((_inner(Fault.STORE_FAILURE, Place.RECEIVED, 1, whole, settings),))
    yield empty.with_faults((fin, _inner(Fault.STORE_FAILURE, Place.RECEIVED, 3, whole, {"reason": "full"})))
    yield empty.with_faults((fin, _inner(Fault.STORE_FAILURE, Place.COMMITTED, 2, whole, {"reason": "io"})))
    sleep = Planned(fault=Fault.SUSPEND, at=fin.at, settings={"sleep_ms": 60_000})
    yield empty.with_faults((sleep,))
    yield empty.with_faults((replace(sleep, at=replace(fin.at, place=Place.IDLE), settings={"sleep_ms": 3_600_000}),))
    yield empty.with_faults((fin, replace(sleep, at=at(Place.CONNECTING, run=whole), nth=2)))


def _inner(fault: Fault, place: Place, event: int, run: int, settings: Mapping[str, Any] | None = None) -> Planned:
    return Planned(fault=fault, at=at(place, event, run=run), route=None, settings=settings or {})
