"""`slicer`: chunks in small pieces. Without a delay the kernel may glue them again on their way."""

from dataclasses import dataclass
from typing import ClassVar

from reattach_chaos.toxiproxy.toxics.base import Flow, Site, Toxic, Unusable, give, rest, setting, take


@dataclass(frozen=True, slots=True)
class Slicer(Toxic):
    """Cut chunks into pieces of `average_size` ± `size_variation` bytes, `delay` microseconds apart.

    Raises:
        Unusable: No average size: the first data would end Toxiproxy's process.
    """

    kind: ClassVar[str] = "slicer"

    average_bytes: int = setting("average_size")
    variation_bytes: int = setting("size_variation")
    delay_us: int = setting("delay")

    def __post_init__(self) -> None:
        if self.average_bytes < 1:
            raise Unusable("a slicer needs an average_size of 1 or more")

    def flow(self, site: Site) -> Flow:
        """Pass each chunk in pieces."""
        spread = min(max(self.variation_bytes, 0), self.average_bytes - 1)
        while chunk := (yield from take()):
            sent = 0
            while sent < len(chunk.data):
                size = self.average_bytes + (site.chance.randint(-spread, spread) if spread else 0)
                piece = chunk.data[sent : sent + size]
                sent += len(piece)
                yield from give(piece)
                if sent < len(chunk.data):
                    yield from rest(self.delay_us / 1_000_000)
