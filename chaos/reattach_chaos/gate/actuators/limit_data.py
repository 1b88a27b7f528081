"""Toxiproxy's own count: `limit_data` ends the connection as soon as its N-th byte has passed. The gate only holds at N, and looks.

The count is of a whole connection, so the answer that is meant must be the connection's first; every connection before it is
counted, too. Afterwards the proxy is healed, on the same port: later connections pass.
"""

import asyncio
from typing import Literal

from reattach_chaos.gate import sockets
from reattach_chaos.gate.actuators.base import ActuatorFailed
from reattach_chaos.schedules import Fault
from reattach_chaos.toxiproxy.control import Proxy, Toxiproxy, ToxiproxyError


class LimitDataActuator:
    """One proxy with one planned end, for one gate.

    Args:
        toxiproxy: The server; stays the caller's.
        fault: How it ends.
        offset: After so many bytes of the answer.
    """

    def __init__(self, toxiproxy: Toxiproxy, fault: Literal["fin", "rst"], offset: int) -> None:
        self._toxiproxy = toxiproxy
        self._fault: Literal["fin", "rst"] = fault
        self._offset = offset
        self._proxy: Proxy | None = None
        self._done = False
        self._busy = asyncio.Lock()  # the client may be gone, and the gate with it, before the proxy is healed

    async def open(self, address: str, first: Fault | None) -> str:
        """Make the proxy and plan the end; see the seam.

        Raises:
            ToxiproxyError: No server, or not what was asked for.
        """
        self._proxy = await asyncio.to_thread(self._toxiproxy.proxy, address)
        await asyncio.to_thread(self._proxy.plan, self._fault, after=self._offset)
        return self._proxy.address

    def obstacle(self, fault: Fault) -> str | None:
        """Return why this cannot be done, in words; None where it can."""
        if fault.value == self._fault and not self._done:
            return None
        return f"this Toxiproxy was planned to end one connection with {self._fault.upper()}"

    async def cut(self, fault: Fault, client: asyncio.StreamWriter, then: Fault | None) -> None:
        """Wait until Toxiproxy has counted and cut; see the seam."""
        self._done = True
        async with self._busy:
            if not await sockets.ended(client):
                raise ActuatorFailed(f"Toxiproxy has not cut after byte {self._offset}")
            if self._proxy is not None:
                try:
                    await asyncio.to_thread(self._proxy.heal)
                except ToxiproxyError as error:
                    raise ActuatorFailed(str(error)) from error

    async def close(self) -> None:
        """Remove the proxy."""
        async with self._busy:
            if self._proxy is not None:
                await asyncio.to_thread(self._proxy.close)
