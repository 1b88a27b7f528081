"""`Backend`: the Toxiproxy that ends the connections of all cases, real or embedded; each case has a proxy of its own on it.

The real one wears out: after every few hundred cases a fresh one takes its place, while no case is being played.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from reattach_chaos.gate.actuators import Actuator
from reattach_chaos.gate.actuators.toxiproxy import ToxiproxyActuator
from reattach_chaos.toxiproxy.control import Toxiproxy
from reattach_chaos.toxiproxy.control.backends import BackendName

BETWEEN = 200
"""So many cases are played on one server before it is looked at."""


class Backend:
    """A Toxiproxy server while cases are played on it.

    Args:
        backend: Which; see `toxiproxy.control`.
        url: A server that runs; "" for none.
        seed: Of the embedded one.
    """

    def __init__(self, backend: BackendName, url: str, seed: int) -> None:
        self._wanted: tuple[BackendName, str | None, int] = (backend, url or None, seed)
        self._toxiproxy: Toxiproxy | None = None
        self._playing = self._played = 0
        self._quiet = asyncio.Condition()
        self.name = ""
        """Which it is, with its version where that says something."""

    async def __aenter__(self) -> Self:
        """Start it.

        Raises:
            InfrastructureError: It cannot be had.
        """
        backend, url, seed = self._wanted
        self._toxiproxy = await asyncio.to_thread(Toxiproxy, backend, url=url, seed=seed)
        self.name = self._toxiproxy.backend
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, if it is ours."""
        if self._toxiproxy is not None:
            await asyncio.to_thread(self._toxiproxy.close)

    @asynccontextmanager
    async def actuator(self) -> AsyncIterator[Actuator]:
        """Return who ends the connections of one case; closed by the gate that uses it."""
        assert self._toxiproxy is not None
        async with self._quiet:
            if self._played >= BETWEEN:
                await self._quiet.wait_for(lambda: self._playing == 0 or self._played < BETWEEN)
                if self._played >= BETWEEN:
                    await asyncio.to_thread(self._toxiproxy.renew)
                    self._played = 0
            self._playing += 1
            self._played += 1
        try:
            yield ToxiproxyActuator(self._toxiproxy)
        finally:
            async with self._quiet:
                self._playing -= 1
                self._quiet.notify_all()
