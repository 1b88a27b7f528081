"""The seam of actuators: whatever stands between the clients and the gate, and ends connections when the gate says now.

The gate holds the connection at the byte: all before it has reached the next kernel, nothing behind it is ever sent. An actuator
needs no position, and knows none.
"""

import asyncio
from typing import Protocol

from reattach_chaos.schedules import Fault

CUTS = frozenset({Fault.FIN, Fault.RST, Fault.STALL, Fault.HALF_OPEN})


class Actuator(Protocol):
    """Ends connections."""

    async def open(self, address: str) -> str:
        """Stand before this `host:port`; return the `host:port` that clients use. Called once for each of the gate's doors."""
        ...

    async def cut(self, fault: Fault, client: asyncio.StreamWriter) -> None:
        """Do one of CUTS to the held connection.

        Args:
            fault: Which. With a stall and a half-open the connection stays, silent: the gate sends nothing more.
            client: The gate's own side towards the client, or towards what stands between.
        """
        ...

    async def close(self) -> None:
        """Go away, with every connection."""
        ...
