"""`slow_close`: data pass, the close comes later. Behind a `limit_data` it is silence after exactly so many bytes."""

from dataclasses import dataclass
from typing import ClassVar

from reattach_chaos.toxiproxy.toxics.base import Flow, Site, Toxic, give, rest, setting, take


@dataclass(frozen=True, slots=True)
class SlowClose(Toxic):
    """Delay the close of this direction by `delay` milliseconds."""

    kind: ClassVar[str] = "slow_close"

    delay_ms: int = setting("delay")

    def flow(self, site: Site) -> Flow:
        """Pass everything, then wait."""
        while chunk := (yield from take()):
            yield from give(chunk.data)
        yield from rest(self.delay_ms / 1000)
