"""`noop`: everything passes. Also what a toxic is on a link where its toxicity did not strike."""

from dataclasses import dataclass
from typing import ClassVar

from reattach_chaos.toxiproxy.toxics.base import Flow, Site, Toxic, give, take


@dataclass(frozen=True, slots=True)
class Noop(Toxic):
    """Nothing happens."""

    kind: ClassVar[str] = "noop"

    def flow(self, site: Site) -> Flow:
        """Pass each chunk on."""
        while chunk := (yield from take()):
            yield from give(chunk.data)
