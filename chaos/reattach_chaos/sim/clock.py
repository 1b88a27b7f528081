"""`SimClock`: the client's seam to time and chance, on a `SimLoop`'s own time. Alarms ring in the loop, no task serves them."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import anyio

from reattach.testing.seams import Alarm
from reattach_chaos.sim.loop import SimLoop

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_BEGIN_S = BEGIN.timestamp()


class SimClock:
    """Time of one case, for its client, its server and its network.

    Args:
        loop: Whose time it is.
        seed: Of the client's chance.
    """

    def __init__(self, loop: SimLoop, seed: int) -> None:
        self._loop = loop
        self.draw = random.Random(seed).uniform
        """Return a number from [low, high]."""
        self.oversleep = loop.oversleep
        """See `SimLoop`."""

    def now(self) -> float:
        """Return the seconds since the case began."""
        return self._loop.now

    def wall(self) -> datetime:
        """Return the wall clock's time, in UTC; it goes with `now`."""
        return BEGIN + timedelta(seconds=self._loop.now)

    def time(self) -> float:
        """Return the wall clock's time in seconds since 1970."""
        return _BEGIN_S + self._loop.now

    def call_at(self, when: float, callback: Callable[[], None]) -> Alarm:
        """Call back once `now() >= when`."""
        return self._loop.alarm(when, callback)

    async def run(self) -> None:
        """Wait until cancelled: the loop rings."""
        await anyio.Event().wait()
