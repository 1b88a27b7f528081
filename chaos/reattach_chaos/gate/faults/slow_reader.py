"""A slow reader: little is taken from the server at a time, so that what it sends waits in its own buffers."""

from collections.abc import Iterator
from dataclasses import dataclass

from reattach_chaos.gate.faults.base import Blow

READ_BYTES = 512


@dataclass(slots=True)
class SlowReader:
    """Waits after each read; see the seam."""

    delay_s: float
    read_bytes: int = READ_BYTES

    def pieces(self, data: bytes) -> Iterator[tuple[float, bytes]]:
        """Yield all of it, later: meanwhile nothing is read."""
        yield self.delay_s, data


async def strike(blow: Blow) -> None:
    """Read this answer slowly."""
    blow.tell()
    blow.link.set_pace(SlowReader(blow.setting("delay_ms") / 1000), "downstream")
