"""`Restarts`: a case's server ends at a place of the wire, or at a step of its own, and comes again after a while with its log.

While it is away the gate turns connections off, as the system of a machine does where nobody listens.
"""

import asyncio
from collections.abc import Callable

from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.cases.servers.own_server import OwnServer
from reattach_chaos.history import CutFired, CutMissed, Recorder, Server
from reattach_chaos.schedules import Planned, Schedule
from reattach_chaos.schedules.settings import setting


class Restarts:
    """Does the restarts of one case.

    Args:
        server: The case's own.
        schedule: What is planned at the server's own steps.
        recorder: Where to write what was done.
        away: Told when the server goes, and when it has come back.
    """

    def __init__(self, server: OwnServer, schedule: Schedule, recorder: Recorder, away: Callable[[bool], None]) -> None:
        self._server = server
        self._schedule = schedule
        self._recorder = recorder
        self._away = away
        self._back: asyncio.Task[None] | None = None
        self._busy = asyncio.Lock()  # two connections may come to their places at once
        self._falls = False
        self._trouble: ServerTrouble | None = None
        """Of a task that runs on when nobody waits for it: `over` raises it."""
        server.stands = self._stands

    async def perform(self, planned: Planned) -> None:
        """End the server; of one that was killed nothing is left when this returns, one that was asked to end is at it.

        Raises:
            ServerTrouble: It did not end, or had not come back from an earlier end.
        """
        async with self._busy:
            await self.over()
            self._falls = True
            await self._fall(planned)
            self._back = asyncio.create_task(self._return(planned))

    async def over(self) -> None:
        """Wait until the server is there again.

        Raises:
            ServerTrouble: It is not.
        """
        while self._back is not None and not self._back.done():
            await self._back
        if self._trouble is not None:
            raise self._trouble

    def missed(self) -> None:
        """The client has ended: say to which steps the server never came."""
        for cut in self._server.steps:
            self._recorder.record(CutMissed(cut=cut, reason="the server never came to that step"))

    async def close(self) -> None:
        """The case is over."""
        if self._back is not None:
            self._back.cancel()
            await asyncio.gather(self._back, return_exceptions=True)

    def _stands(self, cut: int) -> None:
        """The server stands still at a step of its own: it ends there. One that is being ended is that already."""
        planned = self._schedule.faults[cut - 1]
        self._recorder.record(
            CutFired(
                cut=cut,
                fault=planned.fault.value,
                position=planned.at.place.value,
                sequence=planned.at.event,
                who="server",
            )
        )
        if not self._falls:
            self._falls = True
            self._back = asyncio.create_task(self._struck(planned))

    async def _struck(self, planned: Planned) -> None:
        try:
            await self._fall(planned)
        except ServerTrouble as trouble:
            self._trouble = trouble
        else:
            await self._return(planned)

    async def _fall(self, planned: Planned) -> None:
        kill = setting(planned, "signal") == "kill"
        self._away(True)
        if kill:
            await self._server.end("kill")
        self._recorder.record(Server(did="killed" if kill else "stopped", who="server"))

    async def _return(self, planned: Planned) -> None:
        try:
            await self._server.end("term")  # one that was killed has ended
            await asyncio.sleep(float(setting(planned, "down_ms")) / 1000)
            self._falls = False
            await self._server.start()
        except ServerTrouble as trouble:
            self._trouble = trouble
            return
        self._away(False)
        self._recorder.record(Server(did="started", who="server"))
