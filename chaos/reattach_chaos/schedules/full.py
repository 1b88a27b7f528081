"""The full sample: every byte of the canonical run with FIN and with RST, and the pairs of all other axes."""

from collections.abc import Sequence

from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.pairwise import pairwise
from reattach_chaos.schedules.place import Place
from reattach_chaos.schedules.schedule import Planned, Schedule, at
from reattach_chaos.schedules.shape import CANONICAL, Shape

BYTE_CUTS = (Fault.FIN, Fault.RST)


def bytewise(body_bytes: Sequence[int], *, seed: int = 0, scenario: str = "canonical") -> list[Schedule]:
    """Return a case for each byte of each run's stream, with FIN and with RST; see `full`."""
    empty = Schedule(id="no-fault", seed=seed, scenario=scenario)
    return [
        empty.with_faults((Planned(fault=fault, at=at(Place.OFFSET, offset=offset, run=run)),))
        for run, length in enumerate(body_bytes, 1)
        for offset in range(length + 1)
        for fault in BYTE_CUTS
    ]


def full(
    body_bytes: Sequence[int], shape: Shape = CANONICAL, *, seed: int = 0, scenario: str = "session"
) -> list[Schedule]:
    """Return the full sample's schedules.

    Args:
        body_bytes: For each run, how many bytes its stream's answer had in a clean pass; cut is after 0, 1, … of them.
        shape: The runs.
        seed: Of the pairs.
        scenario: What is played.
    """
    cuts = bytewise(body_bytes, seed=seed, scenario=scenario)
    return cuts + pairwise(shape, seed=seed, scenario=scenario)
