"""`SteppedClock`: our client's clocks in a process that was suspended: they are ahead of the machine's by what a file says.

A laptop that sleeps for an hour costs a test an hour. So the process stands still for a moment only, and finds then that both its
clocks went on for the time that was planned, as the simulation's do. No clock of the machine is touched.
"""

import contextlib
import heapq
import itertools
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio

from reattach.testing.seams import Alarm

LOOK_S = 0.05
"""So often the file is looked at: a step is seen that much late at most."""


class SteppedClock:
    """The client's seam to time.

    Args:
        path: The file; that it is not there means 0.
        stepped: Called when a step was seen, and what is due by then has been rung.
    """

    def __init__(self, path: Path, stepped: Callable[[], None]) -> None:
        self._path = path
        self._stepped = stepped
        self._ahead = 0.0
        self._heap: list[tuple[float, int, Alarm]] = []
        self._order = itertools.count()
        self._wake = anyio.Event()
        self._random = random.Random()
        self._look()

    def now(self) -> float:
        """Return monotonic seconds."""
        return time.monotonic() + self._ahead

    def wall(self) -> datetime:
        """Return the wall clock's time, in UTC."""
        return datetime.now(UTC) + timedelta(seconds=self._ahead)

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
            stepped = self._look()
            while self._heap and self._heap[0][0] <= self.now():
                callback = heapq.heappop(self._heap)[2].callback
                if callback is not None:
                    callback()
            if stepped:
                self._stepped()
            if self._wake.is_set():
                continue
            until = self._heap[0][0] - self.now() if self._heap else LOOK_S
            with anyio.move_on_after(min(max(0.0, until), LOOK_S)):
                await self._wake.wait()

    def _look(self) -> bool:
        """Look how far ahead the clocks are; return whether that is new."""
        before = self._ahead
        with contextlib.suppress(OSError, ValueError):
            self._ahead = float(self._path.read_text())
        return self._ahead != before
