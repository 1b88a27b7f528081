"""The seam of actuators: whatever stands between the clients and the gate, and ends connections when the gate says now.

The gate holds the connection at the byte: all before it has reached the next kernel, nothing behind it is ever sent. An actuator
needs no position, and knows none.
"""

import asyncio
from typing import Protocol

from reattach_chaos.schedules import Fault

CUTS = frozenset({Fault.FIN, Fault.RST, Fault.STALL, Fault.HALF_OPEN})


class ActuatorFailed(Exception):
    """The actuator did not do what it was told: the case proves nothing. The message says what is wrong."""


class Actuator(Protocol):
    """Ends connections."""

    async def open(self, address: str, first: Fault | None) -> str:
        """Stand before this `host:port`; return the `host:port` that the client uses. Called once.

        Args:
            address: The gate's.
            first: The first FIN or RST that is planned.
        """
        ...

    def obstacle(self, fault: Fault) -> str | None:
        """Return why it cannot do this to the connections of now, in words; None where it can."""
        ...

    async def cut(self, fault: Fault, client: asyncio.StreamWriter, then: Fault | None) -> None:
        """Do one of CUTS to the held connection.

        Args:
            fault: Which. With a stall and a half-open the connection stays, silent: the gate sends nothing more.
            client: The gate's own side towards the client, or towards what stands between.
            then: The FIN or RST that is planned next, to be ready for it.

        Raises:
            ActuatorFailed: It did not come to it.
        """
        ...

    async def close(self) -> None:
        """Go away, with every connection."""
        ...
