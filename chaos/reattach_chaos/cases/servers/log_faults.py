"""`LogFaults`: what happens to the log of a case's run while the gate holds: its events expire, or another log takes its place.

Done by the admin interface of a server of ours. The control reader reads the log before, since what a client was shown is judged by
all that ever was in it; `seen` keeps that. Never here: what the client must make of it (`checkers/honest_gap.py`).
"""

from reattach_chaos.cases.servers.control import Control, Event, ServerTrouble
from reattach_chaos.gate.cuts import Exchange
from reattach_chaos.history import Recorder, Server
from reattach_chaos.schedules import Fault, Planned, Schedule
from reattach_chaos.schedules.settings import setting

LOG_FAULTS = frozenset({Fault.EXPIRE, Fault.NEW_EPOCH})


class LogFaults:
    """Does the faults of a log in one case.

    Args:
        control: The case's hand.
        recorder: Where to write what was done.
        limit_s: A run has settled within so many seconds.
    """

    def __init__(self, control: Control, recorder: Recorder, limit_s: float) -> None:
        self._control = control
        self._recorder = recorder
        self._limit_s = limit_s
        self._seen: dict[str, dict[str, Event]] = {}
        self._ends: dict[str, str] = {}
        """The runs whose logs were read, with the status that they had settled in then."""
        self._expired: set[str] = set()
        self._names: list[str] = []

    async def name_runs(self, schedule: Schedule, *names: str) -> None:
        """Name the session's runs, for the places that come before a request has named one.

        The logs that will change are read already: the client's stream is silent while its gate holds, and it waits for no sign of
        life longer than for three heartbeats.

        Raises:
            ServerTrouble: One cannot be read.
        """
        self._names = list(names)
        for planned in schedule.faults:
            run = names[planned.at.run - 1] if planned.at.run <= len(names) else ""
            if planned.fault in LOG_FAULTS and run.startswith("run_") and run not in self._ends:
                await self._read(run)

    async def perform(self, planned: Planned, exchange: Exchange) -> None:
        """Do a fault.

        Raises:
            ServerTrouble: The server does not play along.
        """
        run = exchange.run or self._names[planned.at.run - 1]
        keep = int(setting(planned, "keep"))
        if run not in self._ends:
            await self._read(run)
        log = list(self._seen[run].values())
        if planned.fault is Fault.EXPIRE:
            self._expired.add(run)
            kept = max(log[0].logged.sequence, log[-1].logged.sequence - keep + 1)  # of a shorter log nothing expires
            first = await self._control.expire(run, kept)
            self._recorder.record(Server(did="expired", until=first - 1, run=run, who="server"))
            return
        if run in self._expired:
            raise ServerTrouble(f"run {run} has a log whose beginning has expired: what a new one holds cannot be read")
        epoch = await self._control.new_epoch(run, max(1, keep))
        self._recorder.record(Server(did="epoch", epoch=epoch, run=run, who="server"))
        del self._ends[run]
        await self._control.settled(run, self._limit_s)

    async def _read(self, run: str) -> None:
        """Keep what a run's log holds, once it has settled, and how."""
        self._ends[run] = str((await self._control.settled(run, self._limit_s))["status"])
        log = await self._control.log(run)
        self._seen.setdefault(run, {}).update({event.logged.cursor: event for event in log})

    async def end_of(self, run: str) -> str:
        """Return the status that a run has settled in; of one whose events have expired, what it was before.

        Raises:
            ServerTrouble: It has not settled.
        """
        if run in self._expired:
            return self._ends[run]
        return str((await self._control.settled(run, self._limit_s))["status"])

    async def all_of(self, run: str) -> tuple[list[Event], list[Event]]:
        """Return every event that ever was in a run's log, in order, and what it holds of them, expired ones too.

        Raises:
            ServerTrouble: The log cannot be read.
        """
        seen = self._seen.get(run, {})
        if (
            run in self._expired
        ):  # it had settled before: nothing has come since, and there is no beginning to read it from
            last = next(reversed(seen.values())).logged.epoch
            return list(seen.values()), [event for event in seen.values() if event.logged.epoch == last]
        now = await self._control.log(run)
        return list({**seen, **{event.logged.cursor: event for event in now}}.values()), now
