"""Time and chance as one seam, so that tests own both."""

from __future__ import annotations

import heapq
import itertools
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Protocol, TypeVar

import anyio

T = TypeVar("T")


class Alarm:
    """A call that is due at `when` (the clock's seconds), unless it is cancelled."""

    __slots__ = ("callback", "when")

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Do not call. Too late is fine."""
        self.callback = None


class Clock(Protocol):
    """Used from the engine's event loop alone, but for `now` and `wall`."""

    def now(self) -> float:
        """Return monotonic seconds."""
        ...

    def wall(self) -> datetime:
        """Return the wall clock's time, in UTC."""
        ...

    def draw(self, low: float, high: float) -> float:
        """Return a number drawn uniformly from [low, high]."""
        ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        """Call back once `now() >= when`."""
        ...

    async def run(self) -> None:
        """Serve alarms until cancelled."""
        ...


class RealClock:
    """The machine's clocks, under asyncio and trio."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Alarm]] = []
        self._order = itertools.count()
        self._wake = anyio.Event()
        self._random = random.Random()

    def now(self) -> float:
        """Return monotonic seconds (they stand while a laptop sleeps)."""
        return time.monotonic()

    def wall(self) -> datetime:
        """Return the wall clock's time, in UTC."""
        return datetime.now(UTC)

    def draw(self, low: float, high: float) -> float:
        """Return a number drawn uniformly from [low, high]."""
        return self._random.uniform(low, high)

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        """Call back once `now() >= when`."""
        alarm = Alarm(when, callback)
        heapq.heappush(self._heap, (when, next(self._order), alarm))
        if self._heap[0][2] is alarm:
            self._wake.set()
        return alarm

    async def run(self) -> None:
        """Serve alarms until cancelled."""
        while True:
            self._wake = anyio.Event()
            while self._heap and self._heap[0][0] <= self.now():
                callback = heapq.heappop(self._heap)[2].callback
                if callback is not None:
                    callback()
            if self._wake.is_set():
                continue
            until = self._heap[0][0] if self._heap else None
            with anyio.move_on_after(None if until is None else max(0.0, until - self.now())):
                await self._wake.wait()


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait for so many of the clock's seconds."""
    over = anyio.Event()
    alarm = clock.call_at(clock.now() + seconds, over.set)
    try:
        await over.wait()
    finally:
        alarm.cancel()


async def within(clock: Clock, seconds: float, work: Callable[[], Awaitable[T]], late: Exception) -> T:
    """Do it within so many of the clock's seconds, or raise `late`."""
    scope = anyio.CancelScope()
    alarm = clock.call_at(clock.now() + seconds, scope.cancel)
    try:
        with scope:
            return await work()
    finally:
        alarm.cancel()
    raise late
