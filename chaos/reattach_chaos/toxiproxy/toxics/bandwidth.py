"""`bandwidth`: so many kilobytes a second, in portions of a tenth of a second. 0 is a stall, and one that heals without a close."""

from dataclasses import dataclass
from typing import ClassVar

from reattach_chaos.toxiproxy.toxics.base import Flow, Site, Toxic, give, rest, setting, take

_PORTION_MS = 100


@dataclass(frozen=True, slots=True)
class Bandwidth(Toxic):
    """Let `rate` kilobytes (of 1,000 bytes) a second pass; 0 or less: nothing, not even a close."""

    kind: ClassVar[str] = "bandwidth"

    rate_kb_s: int = setting("rate")

    def flow(self, site: Site) -> Flow:
        """Pay for each portion in time before it passes."""
        if self.rate_kb_s <= 0:
            # Nothing is taken: when this toxic is removed all waits in front of it, in order.
            yield from rest(None)
        portion = self.rate_kb_s * _PORTION_MS  # kilobytes a second are bytes a millisecond
        while chunk := (yield from take()):
            for begin in range(0, len(chunk.data), portion):
                piece = chunk.data[begin : begin + portion]
                yield from rest(len(piece) / self.rate_kb_s / 1000)
                yield from give(piece)
