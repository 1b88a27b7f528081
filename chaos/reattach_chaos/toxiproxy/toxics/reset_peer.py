"""`reset_peer`: the first thing that comes is dropped, then the connection ends with RST.

The RST is the connection's property, given when it begins (`Toxic.resets`): added to a live connection, this toxic closes with FIN.
With toxicity 0 it does nothing but turn every close into RST, also that of a `limit_data`.
"""

from dataclasses import dataclass
from typing import ClassVar

from reattach_chaos.toxiproxy.toxics.base import Flow, Site, Toxic, drop, rest, setting, take


@dataclass(frozen=True, slots=True)
class ResetPeer(Toxic):
    """On the first chunk, or the close: drop it, wait `timeout` milliseconds, close."""

    kind: ClassVar[str] = "reset_peer"
    resets: ClassVar[bool] = True

    timeout_ms: int = setting("timeout")

    def flow(self, site: Site) -> Flow:
        """Wait for anything, then end."""
        yield from take()
        yield from drop()
        yield from rest(self.timeout_ms / 1000)
