"""`timeout`: data vanish, and the direction closes once nothing has come for so long. Removing it closes the connection."""

from dataclasses import dataclass
from typing import ClassVar

from reattach_chaos.toxiproxy.toxics.base import Chunk, Flow, Site, Toxic, drop, setting, take_within


@dataclass(frozen=True, slots=True)
class Timeout(Toxic):
    """Drop all data; close `timeout` milliseconds after the last chunk (so traffic keeps it alive), never if 0.

    A close by the other side passes.
    """

    kind: ClassVar[str] = "timeout"
    closes_when_removed: ClassVar[bool] = True

    timeout_ms: int = setting("timeout")

    def flow(self, site: Site) -> Flow:
        """Drop, until it is quiet for long enough."""
        quiet_s = self.timeout_ms / 1000 if self.timeout_ms > 0 else float("inf")
        while isinstance((yield from take_within(quiet_s)), Chunk):
            yield from drop()
