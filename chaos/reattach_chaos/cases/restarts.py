"""`Restarts`: the server of a case ends at a place of the wire, in order or killed, and comes again after a while with its log.

While it is away the gate turns connections off, as the system of a machine does where nobody listens.
"""

import asyncio
from collections.abc import Callable

from reattach_chaos.cases.own_server import OwnServer
from reattach_chaos.history import Recorder, Server
from reattach_chaos.schedules import Planned
from reattach_chaos.schedules.settings import DOWN_MS


class Restarts:
    """Does the restarts of one case.

    Args:
        server: The case's own.
        recorder: Where to write what was done.
        away: Told when the server goes, and when it has come back.
    """

    def __init__(self, server: OwnServer, recorder: Recorder, away: Callable[[bool], None]) -> None:
        self._server = server
        self._recorder = recorder
        self._away = away
        self._back: asyncio.Task[None] | None = None

    async def perform(self, planned: Planned) -> None:
        """End the server; of one that was killed nothing is left when this returns, one that was asked to end is at it."""
        await self.over()
        kill = planned.settings.get("signal", "kill") == "kill"
        seconds = float(planned.settings.get("down_ms", DOWN_MS)) / 1000
        self._away(True)
        if kill:
            await self._server.end("kill")
        self._recorder.record(Server(did="killed" if kill else "stopped", who="server"))
        self._back = asyncio.create_task(self._return(seconds))

    async def over(self) -> None:
        """Wait until the server is there again.

        Raises:
            ServerTrouble: It is not.
        """
        if self._back is not None:
            await self._back

    async def close(self) -> None:
        """The case is over."""
        if self._back is not None:
            self._back.cancel()
            await asyncio.gather(self._back, return_exceptions=True)

    async def _return(self, seconds: float) -> None:
        await self._server.end("term")  # one that was killed has ended
        await asyncio.sleep(seconds)
        await self._server.start()
        self._away(False)
        self._recorder.record(Server(did="started", who="server"))
