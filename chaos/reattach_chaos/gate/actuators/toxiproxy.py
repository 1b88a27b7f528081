"""Toxiproxy, real or embedded, between the clients and the gate: what a client sees of an end is Toxiproxy's.

The gate holds at the byte and ends its own side; Toxiproxy passes the bytes on in their order, then the end, and makes of it the
FIN or the RST that its connections have. So the cut is exact by construction, and concerns the one connection (disabling the proxy
would close all of them, and throw away what is on its way inside it).

Which of the two it is, is settled when a connection begins. So after a cut the proxy is made ready for the next one that is
planned; where the kind changes, that closes the client's other connections, and one that it opens in these milliseconds is refused
or closed without a byte (the gate lets nothing of it through). A stall and a half-open are the gate's silence:
Toxiproxy's own would concern every connection, also those that a client opens next.
"""

import asyncio

from reattach_chaos.gate import sockets
from reattach_chaos.gate.actuators.base import ActuatorFailed
from reattach_chaos.schedules import Fault
from reattach_chaos.toxiproxy.control import Proxy, Toxiproxy, ToxiproxyError

_ENDS = (Fault.FIN, Fault.RST)


class ToxiproxyActuator:
    """One proxy on a server, for one gate.

    Args:
        toxiproxy: The server; stays the caller's.
    """

    def __init__(self, toxiproxy: Toxiproxy) -> None:
        self._toxiproxy = toxiproxy
        self._proxy: Proxy | None = None
        self._busy = asyncio.Lock()  # the client may be gone, and the gate with it, before the proxy is ready

    async def open(self, address: str, first: Fault | None) -> str:
        """Make the proxy; see the seam.

        Raises:
            InfrastructureError: No server, or not what was asked for.
        """
        self._proxy = await asyncio.to_thread(self._toxiproxy.proxy, address, resets=first is Fault.RST)
        return self._proxy.address

    def obstacle(self, fault: Fault) -> str | None:
        """Return why this cannot be done to the connections of now, in words; None where it can."""
        if self._proxy is None or fault not in _ENDS or self._proxy.resets == (fault is Fault.RST):
            return None
        return f"connections of this Toxiproxy end with {'RST' if self._proxy.resets else 'FIN'} until the next cut"

    async def cut(self, fault: Fault, client: asyncio.StreamWriter, then: Fault | None) -> None:
        """Cut; see the seam."""
        if fault not in _ENDS:
            return
        async with self._busy:
            sockets.fin(client)
            if not await sockets.left(client):
                raise ActuatorFailed("Toxiproxy did not pass the end on")
            if then is not None and self._proxy is not None:
                try:
                    await asyncio.to_thread(self._proxy.end_with, "rst" if then is Fault.RST else "fin")
                except ToxiproxyError as error:
                    raise ActuatorFailed(str(error)) from error

    async def close(self) -> None:
        """Remove the proxy."""
        async with self._busy:
            if self._proxy is not None:
                await asyncio.to_thread(self._proxy.close)
