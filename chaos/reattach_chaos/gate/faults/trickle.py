"""Trickle: so few bytes at a time, each a packet of its own."""

from collections.abc import Iterator
from dataclasses import dataclass

from reattach_chaos.gate.faults.base import READ_BYTES, Blow

LEAST_S = 0.0002  # without a wait the kernel glues them together


@dataclass(slots=True)
class Trickle:
    """Pieces of `size` bytes, `delay_s` apart; see the seam."""

    size: int
    delay_s: float
    read_bytes: int = READ_BYTES

    def pieces(self, data: bytes) -> Iterator[tuple[float, bytes]]:
        """Yield it piece by piece."""
        for at in range(0, len(data), self.size):
            yield self.delay_s, data[at : at + self.size]


async def strike(blow: Blow) -> None:
    """Trickle this answer."""
    blow.tell()
    pace = Trickle(max(1, int(blow.setting("bytes"))), max(LEAST_S, blow.setting("delay_ms") / 1000))
    blow.link.set_pace(pace, blow.planned.direction)
