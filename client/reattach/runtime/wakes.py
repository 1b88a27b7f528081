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


class Moment:
    """A moment, on both clocks of a machine: either may stand while it sleeps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now, self._wall = clock.now(), clock.wall()

    def seen(self) -> float:
        """Return the seconds since then by the clock that timers go by."""
        return self._clock.now() - self._now

    def passed(self) -> float:
        """Return the seconds since then, those of a sleep included."""
        return max(self.seen(), (self._clock.wall() - self._wall).total_seconds())


class Watch:
    """Compares the clocks every few seconds.

    Args:
        clock: Both of them.
        woke: Told how many seconds nobody saw.
    """

    def __init__(self, clock: Clock, woke: Callable[[float], None]) -> None:
        self._clock = clock
        self._woke = woke
        self._looked = Moment(clock)

    def start(self) -> None:
        """Begin to look, as long as the clock is served."""
        self._looked = Moment(self._clock)
        self._clock.call_at(self._clock.now() + LOOK, self._look)

    def _look(self) -> None:
        late = self._looked.seen() - LOOK
        ahead = self._looked.passed() - self._looked.seen()
        self.start()
        unseen = max(late, ahead)
        if unseen > SLEPT:
            self._woke(unseen)
