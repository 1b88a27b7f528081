"""One consumer of one run as an application uses it, and what a simple model expects of it.

`Place` is what outlives every process: how far it was handed events, between which bounds its mark must lie. `Reader` is one loop
of one process: a task of its own that does one thing after another, and is cancelled in between. The model is told what the
application did and what it was handed, and looks at nothing inside of the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import reattach
from reattach.model import Event


class Place:
    """A consumer's place in a run, over all processes.

    Attributes:
        handed: The highest position that the application was ever handed.
        low: What was certainly confirmed.
        high: What may have been confirmed: an `ack` that a death cut short, say.
        rows: The positions for which a transaction of the application's certainly committed a row, in order.
        doubtful: The position of a row whose commit a death cut short.
        begun: Whether anybody ever read as this consumer.
    """

    def __init__(self, run_id: str, consumer: str) -> None:
        self.run_id = run_id
        self.consumer = consumer
        self.handed = 0
        self.low = 0
        self.high = 0
        self.rows: list[int] = []
        self.doubtful: int | None = None
        self.begun = False

    def confirmed(self, position: int) -> None:
        """It was confirmed, for certain."""
        self.low = max(self.low, position)
        self.high = max(self.high, position)

    def perhaps(self, position: int) -> None:
        """It may have been confirmed."""
        self.high = max(self.high, position)

    def settle(self, applied: int) -> list[str]:
        """Everything is at rest and the journal says so: from here on it is known; return the laws that this breaks."""
        broken = []
        if not self.low <= applied <= self.high:
            broken.append(
                f"{self}: what was confirmed stays so, and nothing else is: {self.low} <= {applied} <= {self.high}"
            )
        if applied > self.handed:
            broken.append(f"{self}: applied <= delivered: {applied} <= {self.handed}")
        self.low = self.high = applied
        return broken

    def __repr__(self) -> str:
        return f"{self.consumer} of {self.run_id}"


class Stopped(Exception):
    """What a reader did was cancelled."""


class Reader:
    """A loop over a run in one process.

    Args:
        place: Its place.
        run: Its handle.
        loop: The process's.
        manual: Whether only `ack` and transactions confirm.

    Attributes:
        last: The position handed out last since the loop was entered; None: it begins after what is confirmed.
        in_hand: The event in hand that a transaction or `ack` may confirm.
        again: The event in hand comes again, since its transaction was rolled back.
        doubtful: Where this process cannot know what an earlier one handed out.
        seen: Events that this loop handed out.
        ended: The loop ended by itself.
    """

    def __init__(self, place: Place, run: reattach.AsyncRun, loop: asyncio.AbstractEventLoop, *, manual: bool) -> None:
        self.place = place
        self.run = run
        self.manual = manual
        self.last: int | None = None
        self.in_hand: Event | None = None
        self.again = False
        self.doubtful = True
        self.seen: list[Event] = []
        self.ended = False
        self.pending: asyncio.Future[Any] | None = None
        self.began = 0
        """What was confirmed when the loop was entered."""
        self.behind = 0
        """What was committed then: an earlier process may have shown as much."""
        self._asked: asyncio.Queue[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = asyncio.Queue()
        self._doing = False
        self._over = False
        self._task = loop.create_task(self._live())

    async def _live(self) -> None:
        while True:
            work, future = await self._asked.get()
            self._doing = True
            try:
                result = await work()
            except asyncio.CancelledError:
                if self._over:
                    raise
                task = asyncio.current_task()
                assert task is not None
                task.uncancel()
                future.set_exception(Stopped())
            except StopAsyncIteration:
                future.set_result(None)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            self._doing = False

    def ask(self, work: Callable[[], Awaitable[Any]]) -> asyncio.Future[Any]:
        """Do something in this reader's own task; what is already asked for comes first."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((work, future))
        return future

    def next(self) -> asyncio.Future[Any]:
        """Ask for the next event: None at the end."""
        if self.in_hand is not None and not self.again and not self.manual:
            self.place.perhaps(self.in_hand.position)
        self.place.begun = True
        self.pending = self.ask(self.run.__anext__)
        return self.pending

    def cancel(self) -> None:
        """Cancel what it does now."""
        if self._doing:
            self._task.cancel()

    def enter(self) -> None:
        """The loop begins (again), after what is confirmed."""
        self.last = None
        self.in_hand = None
        self.again = False

    async def end(self) -> None:
        """The task is over, whatever it did."""
        self._over = True
        self._task.cancel()
        await asyncio.wait([self._task])
        if self.pending is not None and self.pending.done():
            self.pending.exception()  # nobody else looks at it
