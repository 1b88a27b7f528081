"""A narrow band: so many thousand bytes a second."""

from collections.abc import Iterator
from dataclasses import dataclass

from reattach_chaos.gate.faults.base import READ_BYTES, Blow, Impossible

SLICE_S = 0.02  # a piece is what passes in this time


@dataclass(slots=True)
class Bandwidth:
    """A rate in bytes a second; see the seam."""

    rate: float
    read_bytes: int = READ_BYTES

    def pieces(self, data: bytes) -> Iterator[tuple[float, bytes]]:
        """Yield it slice by slice, each after the time that it takes."""
        size = max(1, int(self.rate * SLICE_S))
        for at in range(0, len(data), size):
            piece = data[at : at + size]
            yield len(piece) / self.rate, piece


async def strike(blow: Blow) -> None:
    """Narrow this answer."""
    rate = blow.setting("kb_per_s") * 1000
    if rate <= 0:
        raise Impossible("a bandwidth of 0 is a stall")
    blow.tell()
    blow.link.set_pace(Bandwidth(rate), blow.planned.direction)
