"""`latency`: each chunk leaves so long after it arrived. A delay line, not a brake: what arrives together leaves together."""

from dataclasses import dataclass
from typing import ClassVar

from reattach_chaos.toxiproxy.toxics.base import Flow, Site, Toxic, give, rest_since_arrival, setting, take


@dataclass(frozen=True, slots=True)
class Latency(Toxic):
    """Delay each chunk by `latency` ± `jitter`, both in milliseconds. The close waits for its turn, no longer."""

    kind: ClassVar[str] = "latency"
    room: ClassVar[int] = 1024

    latency_ms: int = setting("latency")
    jitter_ms: int = setting("jitter")

    def flow(self, site: Site) -> Flow:
        """Hold each chunk until it is old enough."""
        while chunk := (yield from take()):
            jitter_ms = site.chance.uniform(-self.jitter_ms, self.jitter_ms)
            yield from rest_since_arrival((self.latency_ms + jitter_ms) / 1000)
            yield from give(chunk.data)
