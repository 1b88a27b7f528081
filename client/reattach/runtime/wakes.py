"""Notices that the machine slept: time that passed and that no timer saw.

A laptop that sleeps stops the monotonic clock (Linux, macOS) or lets it run on (Windows) while nothing is served. Either shows
when two looks are compared: the wall clock went further than the monotonic one, or the look itself came far too late. A wall clock
that is put forward looks the same, and costs one needless attach; one that is put back means nothing, since nothing here waits by
it.

The look is an alarm's own callback: a budget that ran out during the sleep rings after it, and must find that time was given anew.
"""

from __future__ import annotations

from collections.abc import Callable

from reattach.runtime.clock import Clock

LOOK = 5.0
"""Seconds between two looks."""
SLEPT = 10.0
"""Seconds; a busy machine is late, too, and a time server corrects by less."""


class Watch:
    """Compares the clocks every few seconds.

    Args:
        clock: Both of them.
        woke: Told how many seconds nobody saw.
    """

    def __init__(self, clock: Clock, woke: Callable[[float], None]) -> None:
        self._clock = clock
        self._woke = woke
        self._now = 0.0
        self._wall = clock.wall()

    def start(self) -> None:
        """Begin to look, as long as the clock is served."""
        self._now, self._wall = self._clock.now(), self._clock.wall()
        self._clock.call_at(self._now + LOOK, self._look)

    def _look(self) -> None:
        late = self._clock.now() - self._now - LOOK
        ahead = (self._clock.wall() - self._wall).total_seconds() - (self._clock.now() - self._now)
        self.start()
        unseen = max(late, ahead)
        if unseen > SLEPT:
            self._woke(unseen)
