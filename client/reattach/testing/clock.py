"""`VirtualClock`: time that moves only when a test says so, or only when nothing else is left to do.

    clock = VirtualClock()
    client = reattach.Client(url, store, transport=wire, _seams=Seams(clock=lambda: clock))
    clock.advance(30)                                   # from the test's thread: the next status poll happens now
    await clock.elapse(30)                              # the same inside an event loop, beside an AsyncClient

It implements the runtime's `Clock`: alarms ring in the order of their times, and what one sets off is done before the next rings.
It knows nothing of what it wakes. No real time passes here, and chance comes from a seed: the same test runs the same way.

"Nothing else is left to do" is asked of the event loop itself, never waited for: on trio by its own test function, on asyncio
by an empty queue of ready callbacks. Work that anyio's threads do is waited for, that of other threads only where `busy` tells.
Real sockets are not: use it with `reattach.testing.Wire`.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from reattach.runtime.clock import Alarm
from reattach.runtime.loop import Soon, soon_in_this_loop

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """A clock that stands until it is moved. One may serve several clients, one after another or side by side in one loop.

    Args:
        seed: Of the numbers that `draw` returns.
        autojump: Move to the next alarm by itself whenever nothing else is left to do in the loop.
        wall: The wall clock's time when `now()` is 0.
        jitter: Instead of chance: 0.0 draws the lowest, 1.0 the highest number, anything between what lies there.
        busy: Whether a thread that the loop does not know still works; time stands meanwhile.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        autojump: bool = False,
        wall: datetime = BEGIN,
        jitter: float | None = None,
        busy: Callable[[], bool] | None = None,
    ) -> None:
        self._now = 0.0
        self._began = wall
        self._autojump = autojump
        self._jitter = jitter
        self._busy = busy
        self._random = random.Random(seed)
        self._heap: list[tuple[float, int, Alarm]] = []
        self._order = itertools.count()
        self._goal = 0.0
        self._runners: list[anyio.Event] = []
        self._wake: anyio.Event | None = None
        self._soon: Soon | None = None
        self._loop_thread = 0
        self._reached: list[tuple[float, Callable[[], Any]]] = []
        self._holds = 0
        self._lock = threading.Lock()

    # the seam ---------------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the seconds that this clock was moved so far."""
        return self._now

    def wall(self) -> datetime:
        """Return the wall clock's time, in UTC; it goes with `now`."""
        return self._began + timedelta(seconds=self._now)

    def time(self) -> float:
        """Return the wall clock's time in seconds since 1970: what `MemoryStore(wall=clock.time)` wants."""
        return self.wall().timestamp()

    def draw(self, low: float, high: float) -> float:
        """Return a number from [low, high]: by the seed, or at the place that `jitter` names."""
        return self._random.uniform(low, high) if self._jitter is None else low + (high - low) * self._jitter

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        """Call back once `now() >= when`. From the loop's thread."""
        alarm = Alarm(when, callback)
        heapq.heappush(self._heap, (when, next(self._order), alarm))
        self._stir()
        return alarm

    async def run(self) -> None:
        """Serve alarms until cancelled. Of several runners one serves, the others stand by."""
        mine = anyio.Event()
        self._runners.append(mine)
        try:
            if self._runners[0] is not mine:
                await mine.wait()
            self._loop_thread = threading.get_ident()
            self._soon = soon_in_this_loop()
            await self._serve()
        finally:
            first = self._runners[0] is mine
            self._runners.remove(mine)
            if first:
                self._soon = None
                if self._runners:
                    self._runners[0].set()
                else:
                    self._tell_reached(everyone=True)

    # the test's side --------------------------------------------------------------------------------------------------

    def advance(self, seconds: float, *, limit: float = 30.0) -> None:
        """Move time from another thread than the loop's, and return when everything that this set off in the loop is done.

        Args:
            seconds: How far; 0 only lets the loop finish what it does.
            limit: Real seconds after which the loop is taken for stuck.

        Raises:
            RuntimeError: Called in the loop's thread, where it would wait for itself; there it is `await elapse(...)`.
            TimeoutError: The loop did not come to rest.
        """
        if threading.get_ident() == self._loop_thread and self._soon is not None:
            raise RuntimeError("advance() waits for the loop that it is called in; await elapse() here")
        soon = self._soon
        if soon is None:
            self._now += seconds
            return
        over = threading.Event()
        soon(lambda: self._aim(seconds, over.set))
        if not over.wait(limit):
            raise TimeoutError(f"the loop did not come to rest within {limit:g} s")

    async def elapse(self, seconds: float) -> None:
        """Move time in the loop, and return when everything that this set off is done; 0 only lets things settle."""
        # Whoever was started just now begins to run, the runner too; trio runs one batch in any order.
        for _ in range(2):
            await anyio.lowlevel.checkpoint()
        if self._soon is None:
            self._now += seconds
            return
        over = anyio.Event()
        self._aim(seconds, over.set)
        await over.wait()

    def step_wall(self, seconds: float) -> None:
        """Put the wall clock alone forward, or back: a time server's word, or a sleep during which the monotonic clock stood."""
        self._began += timedelta(seconds=seconds)

    def oversleep(self, seconds: float) -> None:
        """Let both clocks go on while nothing rings: a machine that slept, or a loop that was stuck. Call it in the loop.

        What has become due rings afterwards, in its order, and finds that it is late.
        """
        self._now += seconds
        self._goal = max(self._goal, self._now)
        self._stir()

    def hold(self) -> None:
        """Let no autojump happen until `release`: the test's own thread is at work. From any thread, nested."""
        with self._lock:
            self._holds += 1

    def release(self) -> None:
        """Take one `hold` back."""
        with self._lock:
            self._holds -= 1
        soon = self._soon
        if soon is not None:
            soon(self._stir)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold for the time of a block."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    # inside -----------------------------------------------------------------------------------------------------------

    def _aim(self, seconds: float, told: Callable[[], Any]) -> None:
        goal = max(self._goal, self._now) + seconds
        self._goal = goal
        self._reached.append((goal, told))
        self._stir()

    def _stir(self) -> None:
        if self._wake is not None:
            self._wake.set()

    def _tell_reached(self, *, everyone: bool = False) -> None:
        told = [each for each in self._reached if everyone or each[0] <= self._now]
        self._reached = [each for each in self._reached if each not in told]
        for _, tell in told:
            tell()

    async def _serve(self) -> None:
        idle = _idle_of_this_loop(self._busy)
        while True:
            self._wake = anyio.Event()
            if self._ring_due():
                continue
            until = self._until()
            if until is None and not self._reached:
                await self._wake.wait()
                continue
            if not await idle():
                continue
            until = self._until()
            if self._heap and self._heap[0][0] <= self._now:
                continue
            if until is not None and (until > self._now or not self._reached):
                self._now = max(self._now, until)
            elif self._reached:
                self._now = max(self._now, self._goal)
                self._tell_reached()

    def _ring_due(self) -> bool:
        """Ring what is due; False if nothing was."""
        rang = False
        while self._heap and self._heap[0][0] <= self._now:
            callback = heapq.heappop(self._heap)[2].callback
            if callback is not None:
                rang = True
                callback()
        return rang

    def _until(self) -> float | None:
        """Return the time of the alarm to go to next, None if none may ring now."""
        while self._heap and self._heap[0][2].callback is None:
            heapq.heappop(self._heap)
        if not self._heap:
            return None
        when = self._heap[0][0]
        jumps = self._autojump and not self._holds and not self._reached
        return when if jumps or when <= self._goal else None


def _idle_of_this_loop(busy: Callable[[], bool] | None) -> Callable[[], Any]:
    """Return a function that waits until every other task of the loop that runs now is blocked.

    It returns True then; False to be asked again, where a thread that it waits for has not come back yet.
    """
    limiter = anyio.to_thread.current_default_thread_limiter()

    def threads_work() -> bool:
        return limiter.borrowed_tokens > 0 or (busy is not None and busy())

    try:
        loop: Any = asyncio.get_running_loop()
    except RuntimeError:
        import trio.testing  # only where trio runs already

        async def idle_on_trio() -> bool:
            await trio.testing.wait_all_tasks_blocked()
            return not threads_work()

        return idle_on_trio

    ready = getattr(loop, "_ready", None)
    if ready is None:
        raise RuntimeError("VirtualClock needs asyncio's own event loop, or trio")

    async def idle_on_asyncio() -> bool:
        # Our own handle was taken from the queue to run this line, so that what is in it is somebody else's.
        await asyncio.sleep(0)
        while ready:  # noqa: ASYNC110  # one turn of the loop each; there is no event for "nobody is ready"
            await asyncio.sleep(0)
        return not threads_work()

    return idle_on_asyncio
