"""`Running`: a client's processes during a case: what they say becomes records, a planned kill comes, and time runs out.

A kill comes right after a planned showing: the line was read, so the client had shown it. The same errand then begins again with
the same state, as the next attempt.
"""

import asyncio
import signal
from collections.abc import Mapping

from reattach_chaos.cases.client import Client, Errand
from reattach_chaos.cases.process import GRACE_S, Process
from reattach_chaos.cases.second import Seconds, value_of
from reattach_chaos.gate import Gate
from reattach_chaos.history import Applied, Born, CutFired, CutMissed, Delivered, Died, Exited, Recorder, record_of
from reattach_chaos.schedules import Fault, Place, Schedule

LAST_LIMIT_S = 5.0
KILLED = frozenset({-signal.SIGKILL, 128 + signal.SIGKILL})
"""The exit codes of a killed process, and of a shell whose command was killed."""


class Running:
    """The client of one case.

    Args:
        client: Who it is.
        recorder: Where to write.
        gate: In front of which it works.
        schedule: Its kills are done here.
        timeout_s: For all of it.
    """

    def __init__(self, client: Client, recorder: Recorder, gate: Gate, schedule: Schedule, timeout_s: float) -> None:
        self._client = client
        self._recorder = recorder
        self._gate = gate
        self._schedule = schedule
        self._deadline = asyncio.get_running_loop().time() + timeout_s
        self._life = self._lives = 0
        self.timed_out = False

    async def errand(self, errand: Errand, run: int) -> None:
        """Do an errand to its end, or to the end of the time.

        Args:
            errand: What.
            run: The run's number in the session.
        """
        kills = kills_of(self._schedule, run)
        seconds = Seconds(self._client, self._recorder, self._schedule, run, self._next_life)
        async with seconds:
            for step in range(self._client.steps(errand)):
                attempt = 1
                shown: dict[str, int] = {}
                while await self._live(errand, step, attempt, kills, shown, seconds) and not self.timed_out:
                    attempt += 1
                if self.timed_out:
                    break
        for number in kills.values():
            self._recorder.record(CutMissed(cut=number, reason="the event was never shown"))

    def _next_life(self) -> int:
        self._lives += 1
        return self._lives

    async def _live(
        self, errand: Errand, step: int, attempt: int, kills: dict[int, int], shown: dict[str, int], seconds: Seconds
    ) -> bool:
        """Start a process and hear it out; return whether it was killed by plan."""
        self._life = self._next_life()
        self._gate.life = self._life
        run = errand.run or None
        process = await self._client.start(errand, step, attempt)
        self._recorder.record(Born(life=self._life, run=run))
        try:
            async with asyncio.timeout_at(self._deadline):
                struck = await self._listen(process, errand, step, kills, shown, seconds)
                code = await process.code()
                if (
                    not struck
                ):  # its end is told once no other process shows anything: what comes again is not of a next life
                    await seconds.over()
        except TimeoutError:
            self.timed_out = True
            await _end(process)
            self._recorder.record(Exited(code=None, life=self._life, run=run))
            return False
        except BaseException:
            process.signal("kill")
            raise
        if struck and code in KILLED:
            for event in struck:
                self._recorder.record(self._fired(kills.pop(event), event))
            self._recorder.record(Died(life=self._life, run=run))
            return True
        self._recorder.record(Exited(code=code, life=self._life, run=run))
        for event in struck:
            self._recorder.record(CutMissed(cut=kills.pop(event), reason="the client had ended before the kill came"))
        return False

    async def _listen(
        self,
        process: Process,
        errand: Errand,
        step: int,
        kills: Mapping[int, int],
        shown: dict[str, int],
        seconds: Seconds,
    ) -> list[int]:
        """Record all lines; return the event for which the process was killed.

        What was said before the kill, and is read after it, was shown as well.
        """
        run = errand.run or None
        struck: list[int] = []
        while (text := await process.line()) is not None:
            value = value_of(text)
            if isinstance(value, dict) and value.get("kind") == "run" and isinstance(value.get("run"), str):
                run = value["run"]  # an answer, or a start, makes another run than the errand's
            record = record_of(value, life=self._life, run=run)
            self._recorder.record(record)
            place = None
            if isinstance(record, Delivered):
                place = shown.setdefault(record.id, _sequence(record.id) or len(shown) + 1)
            elif isinstance(record, Applied):
                place = shown.get(record.id)
            if struck:
                continue
            seconds.hear(record, place, errand, step)
            if isinstance(record, Delivered) and place is not None and place in kills:
                process.signal("kill")
                struck = [place]
        return struck

    def _fired(self, number: int, event: int) -> CutFired:
        return CutFired(
            cut=number, fault=Fault.KILL.value, position=Place.DELIVERED.value, sequence=event, life=self._life
        )


async def _end(process: Process) -> None:
    """End a process whose time is up."""
    for word in ("term", "kill"):
        process.signal(word)
        try:
            async with asyncio.timeout(GRACE_S if word == "term" else LAST_LIMIT_S):
                while await process.line() is not None:
                    pass
                await process.code()
        except TimeoutError:
            continue
        return


def kills_of(schedule: Schedule, run: int) -> dict[int, int]:
    """Return event → the fault's number, for each kill that is planned in a run."""
    return {
        planned.at.event: number
        for number, planned in enumerate(schedule.faults, 1)
        if planned.fault is Fault.KILL and planned.at.run == run and planned.at.event is not None
    }


def _sequence(id: str) -> int | None:
    tail = id.rpartition(".")[2]
    return int(tail) if "." in id and tail.isascii() and tail.isdigit() else None
