"""Latency: whatever is read goes on so much later."""

from collections.abc import Iterator
from dataclasses import dataclass

from reattach_chaos.gate.faults.base import READ_BYTES, Blow


@dataclass(slots=True)
class Latency:
    """A delay in seconds; see the seam."""

    delay_s: float
    read_bytes: int = READ_BYTES

    def pieces(self, data: bytes) -> Iterator[tuple[float, bytes]]:
        """Yield all of it, later."""
        yield self.delay_s, data


async def strike(blow: Blow) -> None:
    """Delay this answer."""
    blow.tell()
    blow.link.set_pace(Latency(blow.setting("delay_ms") / 1000), blow.planned.direction)
