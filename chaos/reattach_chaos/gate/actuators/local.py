"""The gate's own hands: FIN, RST, silence, on its own socket towards the client."""

import asyncio

from reattach_chaos.gate import sockets
from reattach_chaos.schedules import Fault


class LocalActuator:
    """Stands nowhere: clients speak with the gate itself."""

    async def open(self, address: str, first: Fault | None) -> str:
        """Return the address as it is."""
        return address

    def obstacle(self, fault: Fault) -> str | None:
        """Nothing hinders it."""
        return None

    async def cut(self, fault: Fault, client: asyncio.StreamWriter, then: Fault | None) -> None:
        """Do it; see the seam. A stall and a half-open are no deed: the gate is silent."""
        match fault:
            case Fault.FIN:
                sockets.fin(client)
            case Fault.RST:
                sockets.rst(client)
            case _:
                pass

    async def close(self) -> None:
        """Nothing is there to go."""
