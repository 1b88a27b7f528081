"""`Deeds`: what a case's runner does at a place of the wire while the gate holds: to a log, to the server, to the way there.

Never here: how it is done (`log_faults.py`, `restarts.py`, `ways.py`), nor what a client must make of it.
"""

import asyncio
from types import TracebackType
from typing import Self

from reattach_chaos.cases.servers.control import Control, Event, ServerTrouble
from reattach_chaos.cases.servers.log_faults import LogFaults
from reattach_chaos.cases.servers.own_server import OwnServer
from reattach_chaos.cases.servers.restarts import Restarts
from reattach_chaos.cases.servers.ways import Ways
from reattach_chaos.cases.session import SETTLE_S
from reattach_chaos.gate import Gate
from reattach_chaos.gate.cuts import Exchange
from reattach_chaos.history import Recorder
from reattach_chaos.schedules import Fault, Planned, Schedule


class Deeds:
    """The deeds of one case; entered before the gate and left behind it.

    Args:
        control: The case's hand.
        recorder: Where to write what was done.
        server: The case's own; None: it has none.
        ways: The client's way to it.
        schedule: What is planned.
    """

    def __init__(
        self, control: Control, recorder: Recorder, server: OwnServer | None, ways: Ways, schedule: Schedule
    ) -> None:
        self._log_faults = LogFaults(control, recorder, SETTLE_S)
        self._restarts = None if server is None else Restarts(server, schedule, recorder, self._away)
        self._ways = ways
        self._schedule = schedule
        self._gate: Gate | None = None
        self._trouble: ServerTrouble | None = None
        self._begun: set[asyncio.Task[None]] = set()

    async def meet(self, gate: Gate, *names: str) -> None:
        """Be told of the case's gate, and of the session's runs in their order.

        Raises:
            ServerTrouble: The log of one cannot be read.
        """
        self._gate = gate
        await self._log_faults.name_runs(self._schedule, *names)

    async def perform(self, planned: Planned, exchange: Exchange) -> None:
        """Do a fault. Where the server does not play along, `over` raises what was wrong.

        It is done to its end, also where the connection ends meanwhile: a server that was asked for it may have done it already.
        """
        task = asyncio.create_task(self._do(planned, exchange))
        self._begun.add(task)
        await asyncio.shield(task)

    async def _do(self, planned: Planned, exchange: Exchange) -> None:
        try:
            if planned.fault is Fault.NO_ROUTE:
                self._ways.lose(planned)
            elif self._restarts is None:
                await self._log_faults.perform(planned, exchange)
            elif planned.fault is Fault.SERVER_RESTART:
                await self._restarts.perform(planned)
            else:
                await self._restarts.over()
                await self._log_faults.perform(planned, exchange)
        except ServerTrouble as error:
            self._trouble = self._trouble or error

    async def over(self) -> None:
        """Wait until all is as it was, so that it can be read.

        Raises:
            ServerTrouble: It is not, or something could not be done; what came first is raised.
        """
        await asyncio.gather(*self._begun)
        if self._restarts is not None:
            await self._restarts.over()
            self._restarts.missed()
        if self._trouble is not None:
            raise self._trouble
        self._ways.over()

    async def end_of(self, run: str) -> str:
        """Return the status that a run has settled in; see `LogFaults`."""
        return await self._log_faults.end_of(run)

    async def all_of(self, run: str) -> tuple[list[Event], list[Event]]:
        """Return every event that ever was in a run's log, and what it holds of them; see `LogFaults`."""
        return await self._log_faults.all_of(run)

    async def __aenter__(self) -> Self:
        """The case begins."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The case is over: nothing comes back any more."""
        for task in self._begun:
            task.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)
        if self._restarts is not None:
            await self._restarts.close()

    def _away(self, is_away: bool) -> None:
        if self._gate is not None:
            self._gate.away(is_away)
