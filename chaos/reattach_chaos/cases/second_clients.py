"""`SecondClients`: a second process of the client under test begins while the first lives, on one state: one of them may apply.

It begins when the first has shown the event that is planned, or, where its mark is meant, when that must have moved. What it
shows is the client's, as if one process had shown it: whichever of them goes on, each event is to be shown once. That it was
refused is said, and is no end of the client; any other error of it is one.

Never here: which of the two must go on. The client's lease decides that, and the laws judge what came of it.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from reattach_chaos.cases.client import Client, Errand
from reattach_chaos.cases.processes.process import Process
from reattach_chaos.cases.spoken import read_line
from reattach_chaos.history import (
    Applied,
    Born,
    CutFired,
    CutMissed,
    Delivered,
    Finished,
    Record,
    Recorder,
    Said,
    Surfaced,
    record_of,
)
from reattach_chaos.schedules import Fault, Place, Planned, Schedule

REFUSALS = frozenset({"run_busy", "lease_lost"})
"""The codes with which a client tells that another process is the one that applies."""
_MARKED = (Place.APPLIED, Place.ACKNOWLEDGED)


class SecondClients:
    """The second clients of one errand.

    Args:
        client: Who is under test.
        recorder: Where to write.
        schedule: What is planned.
        run: The run's number in the session.
        lives: Gives the number of the next process.
    """

    def __init__(
        self, client: Client, recorder: Recorder, schedule: Schedule, run: int, lives: Callable[[], int]
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._lives = lives
        self._planned = {
            number: planned
            for number, planned in enumerate(schedule.faults, 1)
            if planned.fault is Fault.SECOND_CLIENT and planned.at.run == run
        }
        self._tasks: list[asyncio.Task[None]] = []

    def hear(self, record: Record, place: int | None, errand: Errand, step: int) -> None:
        """Take what the first one said; begin what is due.

        Args:
            record: What it said.
            place: The event's number, where it showed one.
            errand: What it does; so does the second.
            step: Of the errand.
        """
        for number, planned in list(self._planned.items()):
            if _is_due(planned, record, place):
                del self._planned[number]
                self._tasks.append(asyncio.create_task(self._live(number, planned, errand, step)))

    async def over(self) -> None:
        """Wait until each that has begun has ended.

        Raises:
            OSError: One could not be started.
        """
        await asyncio.gather(*self._tasks)

    async def __aenter__(self) -> Self:
        """The errand begins."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The errand is over: kill who still lives, say what never came."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for number in self._planned:
            self._recorder.record(CutMissed(cut=number, reason="the event was never shown"))

    async def _live(self, number: int, planned: Planned, errand: Errand, step: int) -> None:
        life, run = self._lives(), errand.run or None
        process = await self._client.start(errand, step, 1)
        self._recorder.record(Born(life=life, run=run))
        self._recorder.record(
            CutFired(
                cut=number,
                fault=planned.fault.value,
                position=planned.at.place.value,
                sequence=planned.at.event,
                life=life,
                run=run,
            )
        )
        try:
            run = await self._listen(process, life, run)
            code = await process.code()
        except BaseException:
            process.signal("kill")
            raise
        self._recorder.record(Said(text=f"the second client left with exit code {code}", life=life, run=run))

    async def _listen(self, process: Process, life: int, run: str | None) -> str | None:
        """Record all lines; return the run that it said to follow."""
        while (text := await process.line()) is not None:
            value, run = read_line(text, run)
            record = record_of(value, life=life, run=run)
            if isinstance(record, Surfaced) and record.what == "error" and record.reason in REFUSALS:
                record = Said(text=f"the second client: {record.reason}", life=life, run=run)
            self._recorder.record(record)
        return run


def _is_due(planned: Planned, record: Record, place: int | None) -> bool:
    """Whether the first client is at the place by what it just said: that it shows more tells that the mark has moved."""
    event = planned.at.event or 1
    if planned.at.place not in _MARKED:
        return isinstance(record, Delivered) and place is not None and place >= event
    if isinstance(record, Delivered):
        return place is not None and place > event
    return isinstance(record, Finished) or (isinstance(record, Applied) and (place or 0) >= event)
