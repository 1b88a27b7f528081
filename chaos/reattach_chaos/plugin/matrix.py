"""`matrix`: the marker's words as cases: which schedules one test is expanded into. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from reattach_chaos.gate.faults import STRIKES
from reattach_chaos.schedules import Fault, Place, Planned, Schedule, Shape, at
from reattach_chaos.schedules.fits import PLACES, STREAM_PLACES
from reattach_chaos.schedules.place import ON_REQUEST
from reattach_chaos.schedules.quick import before

On: TypeAlias = Literal["stream", "resume", "both"]
BOUNDARIES = "boundaries"
_PLACES = tuple(place for place in (*ON_REQUEST, *STREAM_PLACES) if place is not Place.OFFSET)
_FAULTS = ("fin", "rst", "stall")
# What an answer's bytes may not have in it (a line end of two, a long character) would be a case that proves nothing.
_INSIDE = tuple(
    place
    for place in STREAM_PLACES
    if place.of_event and place not in (Place.IN_CHARACTER, Place.IN_LINE_END, Place.IN_REPLAY)
)


class MarkerError(ValueError):
    """The marker's arguments say no cases; tells what is wrong with which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """What `@pytest.mark.reattach_cuts(…)` says.

    Attributes:
        scenario: A ready scenario's name, or a file.
        places: Where; empty: at the boundaries of events.
        faults: Which.
        on: On the first stream, on the one after it, or on each in a case of its own.
    """

    scenario: str = "hello"
    places: tuple[Place, ...] = ()
    faults: tuple[Fault, ...] = tuple(map(Fault, _FAULTS))
    on: On = "stream"


def cuts_of(scenario: str = "hello", positions: Any = BOUNDARIES, faults: Any = _FAULTS, on: Any = "stream") -> Cuts:
    """Return the marker's words as values; its signature is the marker's.

    Raises:
        MarkerError: A word is unknown, or a fault cannot come there.
    """
    if not isinstance(scenario, str):
        raise MarkerError(f"scenario={scenario!r}: a ready scenario's name or the path of a file is needed")
    if on not in ("stream", "resume", "both"):
        raise MarkerError(f"on={on!r}: stream, resume or both is needed")
    words = () if positions == BOUNDARIES else _several("positions", positions)
    places = tuple(_word("positions", Place, each, (BOUNDARIES, *_PLACES)) for each in words)
    chosen = tuple(_word("faults", Fault, each, tuple(STRIKES)) for each in _several("faults", faults))
    for fault in chosen:
        wrong = [str(place) for place in places or (Place.AFTER_EVENT,) if place not in PLACES[fault]]
        if wrong:
            raise MarkerError(
                f"faults: {fault} cannot come at {', '.join(wrong)}; it can at {', '.join(PLACES[fault])}"
            )
    return Cuts(scenario=scenario, places=places, faults=chosen, on=on)


def expand(cuts: Cuts, shape: Shape, seed: int, *, full: bool) -> list[Schedule]:
    """Return the cases, one for each place and fault, each id once.

    Args:
        cuts: The marker's words.
        shape: Of the run.
        seed: Of each schedule.
        full: Inside each event, too, where the marker leaves the places open.
    """
    empty = Schedule(id="no-fault", seed=seed, scenario=cuts.scenario)
    found: dict[str, Schedule] = {}
    for position in _positions(cuts, shape, full=full):
        for fault in cuts.faults:
            if position.place not in PLACES[fault]:
                continue
            planned = Planned(fault=fault, at=position)
            cases: list[tuple[Planned, ...]] = [(planned,)] if cuts.on != "resume" else []
            if cuts.on != "stream":
                cases.append((before(position.event or 2), replace(planned, nth=2)))
            for faults in cases:
                schedule = empty.with_faults(faults)
                found.setdefault(schedule.id, schedule)
    return list(found.values())


def _positions(cuts: Cuts, shape: Shape, *, full: bool) -> Iterator[Any]:
    last = len(shape.runs[0])
    places = cuts.places or (Place.AFTER_EVENT, *(_INSIDE if full else ()))
    for event in range(1, last + 1):
        for place in places:
            # Behind the last event the client ends by itself, perhaps sooner than we: only what it waits for is surely cut.
            if event == last and place in (Place.AFTER_EVENT, Place.IDLE):
                yield at(Place.BEFORE_BLANK_LINE, event)
            elif place.of_event:
                yield at(place, event)
    for place in places:
        if not place.of_event:
            yield at(place)


def _several(name: str, words: Any) -> tuple[Any, ...]:
    several = (words,) if isinstance(words, str) else tuple(words) if isinstance(words, Iterable) else ()
    if not several:
        raise MarkerError(f"{name}={words!r}: one or more words are needed")
    return several


def _word(name: str, kind: Any, word: Any, known: tuple[str, ...]) -> Any:
    if word not in known or word == BOUNDARIES:
        raise MarkerError(f"{name}: {word!r} is unknown; there are {', '.join(known)}")
    return kind(word)
