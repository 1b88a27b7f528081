"""`Running`: a client's processes during a case: what they say becomes records, planned faults come, and time runs out.

A kill comes right after a planned showing: the line was read, so the client had shown it. What comes at another instant of the
client's own its process does to itself, and says it (`inside/`). After a kill, and after a store's failure that was told as an
error, the same errand begins again with the same state, as the next attempt.
"""

import asyncio
import contextlib
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reattach_chaos.cases.client import Client, Errand
from reattach_chaos.cases.inside.instants import DID, STRUCK, WOKE, Instant, Instants, are_inside, instants_of
from reattach_chaos.cases.processes.process import GRACE_S, Process
from reattach_chaos.cases.second_clients import SecondClients
from reattach_chaos.cases.spoken import read_line
from reattach_chaos.gate import Gate
from reattach_chaos.gate.numbering import sequence_of
from reattach_chaos.history import (
    Applied,
    Born,
    CutFired,
    CutMissed,
    Delivered,
    Died,
    Exited,
    Finished,
    Recorder,
    Store,
    Surfaced,
    record_of,
)
from reattach_chaos.schedules import Fault, Place, Planned, Schedule
from reattach_chaos.schedules.fault import STORE_REASONS
from reattach_chaos.schedules.settings import setting

LAST_LIMIT_S = 5.0
LONGEST_WAKE_S = 2.0
SUSPENDED_S = 0.5
"""A suspended client stands still for so long at most; its clocks, where they are ours, go on for all of the planned time."""
KILLED = frozenset({-signal.SIGKILL, 128 + signal.SIGKILL})
"""The exit codes of a killed process, and of a shell whose command was killed."""


@dataclass(slots=True)
class _Heard:
    """What one process said that decides whether the errand begins again."""

    struck: list[int] = field(default_factory=list)
    """The events behind which we killed it."""
    dies: bool = False
    """It said that it kills itself."""
    failed: bool = False
    """Its store failed by plan."""
    error: bool = False
    finished: bool = False


class Running:
    """The client of one case.

    Args:
        client: Who it is.
        recorder: Where to write.
        gate: In front of which it works.
        schedule: Its kills, its store's failures and its sleep are done here.
        timeout_s: For all of it.
    """

    def __init__(self, client: Client, recorder: Recorder, gate: Gate, schedule: Schedule, timeout_s: float) -> None:
        self._client = client
        self._recorder = recorder
        self._gate = gate
        self._schedule = schedule
        self._deadline = asyncio.get_running_loop().time() + timeout_s
        self._life = self._lives = 0
        self._inside = bool(client.instants) and are_inside(schedule)
        self._left: dict[int, Instant] = {}
        self._process: Process | None = None
        self._errand: Errand | None = None
        self._ahead_s = 0.0
        self._woke = asyncio.Event()
        self.timed_out = False

    async def errand(self, errand: Errand, run: int) -> None:
        """Do an errand to its end, or to the end of the time.

        Args:
            errand: What.
            run: The run's number in the session.
        """
        kills = {} if self._inside else kills_of(self._schedule, run)
        self._left = {each.cut: each for each in instants_of(self._schedule, run)} if self._inside else {}
        steps = self._client.steps(errand)
        second_clients = SecondClients(self._client, self._recorder, self._schedule, run, self._next_life)
        async with second_clients:
            for step in range(steps):
                attempt = 1
                shown: dict[str, int] = {}
                last = step == steps - 1  # before it another run is shown, if any
                due = kills if last else {}
                while await self._live(self._ordered(errand, last), step, attempt, due, shown, second_clients):
                    if self.timed_out:
                        break
                    attempt += 1
                if self.timed_out:
                    break
        for number in kills.values():
            self._recorder.record(CutMissed(cut=number, reason="the event was never shown"))
        for number in self._left:
            self._recorder.record(CutMissed(cut=number, reason="the client never came to that instant"))

    async def suspend(self, planned: Planned) -> None:
        """Let the client's process stand still, and step its clocks; when this returns, it goes on, and knows what time it is."""
        process, errand = self._process, self._errand
        sleep_s = float(setting(planned, "sleep_ms")) / 1000
        if process is None or errand is None:
            return
        ahead_s = max(0.0, sleep_s - SUSPENDED_S)
        steps = errand.inside is not None and bool(errand.inside.clock) and ahead_s > 0
        self._woke.clear()
        process.signal("stop")
        try:
            await asyncio.sleep(min(sleep_s, SUSPENDED_S))
            if errand.inside is not None and steps:
                self._ahead_s += ahead_s
                await asyncio.to_thread(Path(errand.inside.clock).write_text, str(self._ahead_s))
        finally:
            process.signal("cont")
        if steps:
            with contextlib.suppress(TimeoutError):  # it may end without having seen it
                async with asyncio.timeout(LONGEST_WAKE_S):
                    await self._woke.wait()

    def _ordered(self, errand: Errand, last: bool) -> Errand:
        """Return the errand with what the next process is to do to itself."""
        if not self._inside:
            return errand
        slept = self._client.clocks and any(each.fault is Fault.SUSPEND for each in self._schedule.faults)
        clock = str(errand.state.parent / "clock") if slept else ""
        return replace(errand, inside=Instants(tuple(self._left.values()) if last else (), clock))

    def _unharmed(self, errand: Errand) -> Errand:
        """Return the errand as another process has it, which nothing happens to."""
        return errand if errand.inside is None else replace(errand, inside=replace(errand.inside, faults=()))

    def _next_life(self) -> int:
        self._lives += 1
        return self._lives

    async def _live(
        self,
        errand: Errand,
        step: int,
        attempt: int,
        kills: dict[int, int],
        shown: dict[str, int],
        second_clients: SecondClients,
    ) -> bool:
        """Start a process and hear it out; return whether the errand is to begin again."""
        self._life = self._next_life()
        self._gate.life = self._life
        run = errand.run or None
        process = await self._client.start(errand, step, attempt)
        self._process, self._errand = process, errand
        self._recorder.record(Born(life=self._life, run=run))
        try:
            async with asyncio.timeout_at(self._deadline):
                heard = await self._listen(process, errand, step, kills, shown, second_clients)
                code = await process.code()
                if not (heard.struck or heard.dies):
                    # Its end is told once no other process shows anything: what comes again is not of a next life.
                    await second_clients.over()
        except TimeoutError:
            self.timed_out = True
            await _end(process)
            self._recorder.record(Exited(code=None, life=self._life, run=run))
            return False
        except BaseException:
            process.signal("kill")
            raise
        if (heard.struck or heard.dies) and code in KILLED:
            for event in heard.struck:
                self._recorder.record(self._fired(kills.pop(event), Fault.KILL, Place.DELIVERED, event))
            self._recorder.record(Died(life=self._life, run=run))
            return True
        self._recorder.record(Exited(code=code, life=self._life, run=run))
        for event in heard.struck:
            self._recorder.record(CutMissed(cut=kills.pop(event), reason="the client had ended before the kill came"))
        # Who was told that its journal cannot be written types the same again; who left without a word is not helped.
        return heard.failed and heard.error and not heard.finished

    async def _listen(
        self,
        process: Process,
        errand: Errand,
        step: int,
        kills: Mapping[int, int],
        shown: dict[str, int],
        second_clients: SecondClients,
    ) -> _Heard:
        """Record all lines; return what they were.

        What was said before a kill, and is read after it, was shown as well.
        """
        run = errand.run or None
        heard = _Heard()
        while (text := await process.line()) is not None:
            value, run = read_line(text, run)
            if errand.inside is not None and isinstance(value, dict) and value.get("kind") == STRUCK:
                self._struck(value, heard, run)
                continue
            if errand.inside is not None and isinstance(value, dict) and value.get("kind") == WOKE:
                self._woke.set()
                continue
            record = record_of(value, life=self._life, run=run)
            self._recorder.record(record)
            heard.error |= isinstance(record, Surfaced) and record.what == "error"
            heard.finished |= isinstance(record, Finished)
            place = None
            if isinstance(record, Delivered):
                place = shown.setdefault(record.id, _sequence(record.id) or len(shown) + 1)
            elif isinstance(record, Applied):
                place = shown.get(record.id)
            if heard.struck:
                continue
            second_clients.hear(record, place, self._unharmed(errand), step)
            if isinstance(record, Delivered) and place is not None and place in kills:
                process.signal("kill")
                heard.struck = [place]
        return heard

    def _struck(self, value: Mapping[str, Any], heard: _Heard, run: str | None) -> None:
        """Record what a process of ours says that it does to itself."""
        cut, did = value.get("cut"), value.get("did")
        instant = self._left.pop(cut, None) if isinstance(cut, int) else None
        if instant is None or did not in DID:
            return
        self._recorder.record(self._fired(instant.cut, instant.fault, instant.place, instant.event, run))
        if did == "killed":
            heard.dies = True
            return
        heard.failed |= did == "failed"
        reason = STORE_REASONS[instant.reason] if did == "failed" else ""
        self._recorder.record(Store(did=did, reason=reason, life=self._life, run=run))

    def _fired(self, number: int, fault: Fault, place: Place, event: int, run: str | None = None) -> CutFired:
        return CutFired(cut=number, fault=fault.value, position=place.value, sequence=event, life=self._life, run=run)


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
    return sequence_of(id) if "." in id else None
