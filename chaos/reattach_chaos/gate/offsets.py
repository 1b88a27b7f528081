"""Offsets: the byte of each place, noted in a clean pass, so that a proxy that only counts bytes can cut there in the next one.

    async with Gate(server, no_faults, recorder, notes=True) as gate: …        # the clean pass
    found = boundary(gate.boundaries, at("after-event", 7))
    fault = Planned(fault=Fault.RST, at=at("offset", offset=found.offset))
    Gate(server, …, LimitDataActuator(toxiproxy, "rst", found.offset), prefixes={1: found.prefix_sha256})

Exact only where the bytes repeat (the reference server's deterministic mode). So the digest of the bytes before the place is
compared when it is reached: where it is another, the fault is missed and the case inconclusive.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from reattach_chaos.gate.cuts import meets
from reattach_chaos.gate.marks import Mark
from reattach_chaos.schedules import Position


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place of a stream that was passed.

    Attributes:
        run: The run's number in the session, from 1.
        nth: The stream's number among those of the run, from 1.
        mark: The place.
        offset: So many bytes of the answer had passed, head and framing included.
        prefix_sha256: Of those bytes.
    """

    run: int
    nth: int
    mark: Mark
    offset: int
    prefix_sha256: str


def boundary(boundaries: Iterable[Boundary], position: Position, nth: int = 1) -> Boundary | None:
    """Return the first boundary of the nth stream that is this position; None where it never came."""
    ours = (each for each in boundaries if each.run == position.run and each.nth == nth)
    return next((each for each in ours if meets(position, each.mark)), None)
