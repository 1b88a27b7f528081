"""The named timers of one subscription: at most one of each name, re-armed often and cheaply."""

from __future__ import annotations

from collections.abc import Callable

from reattach.core.messages import TimerName
from reattach.runtime.clock import Alarm, Clock


class Timers:
    """Timers by name.

    An idle timer is begun anew at every read; pushing an alarm for each would fill the clock's heap, so a running alarm is left
    where it is and looks again when it rings.
    """

    def __init__(self, clock: Clock, elapsed: Callable[[TimerName], None]) -> None:
        self._clock = clock
        self._elapsed = elapsed
        self._due: dict[TimerName, float] = {}
        self._alarms: dict[TimerName, Alarm] = {}
        self._standing: dict[TimerName, float | None] = {}

    def stand(self, *names: TimerName) -> None:
        """Let time stand for these timers until `go_on`, whether they run already or are started meanwhile."""
        for name in names:
            left = self.left(name)
            self.stop(name)
            self._standing[name] = left

    def go_on(self) -> None:
        """Let time pass again for all."""
        standing, self._standing = self._standing, {}
        for name, left in standing.items():
            if left is not None:
                self.start(name, left)

    def start(self, name: TimerName, seconds: float) -> None:
        """Start, or start anew."""
        if name in self._standing:
            self._standing[name] = seconds
            return
        due = self._clock.now() + seconds
        self._due[name] = due
        alarm = self._alarms.get(name)
        if alarm is not None:
            if alarm.when <= due:
                return
            alarm.cancel()
        self._arm(name, due)

    def stop(self, name: TimerName) -> None:
        """Stop; one that does not run is left alone."""
        if name in self._standing:
            self._standing[name] = None
        self._due.pop(name, None)
        alarm = self._alarms.pop(name, None)
        if alarm is not None:
            alarm.cancel()

    def stop_all(self) -> None:
        """Stop every timer."""
        for name in [*self._alarms, *self._standing]:
            self.stop(name)

    def left(self, name: TimerName) -> float | None:
        """Return the seconds that the timer still has, None if it does not run."""
        if name in self._standing:
            return self._standing[name]
        due = self._due.get(name)
        return None if due is None else max(0.0, due - self._clock.now())

    def _arm(self, name: TimerName, when: float) -> None:
        def ring() -> None:
            self._alarms.pop(name, None)
            due = self._due.get(name)
            if due is None:
                return
            if due > self._clock.now():
                self._arm(name, due)
                return
            del self._due[name]
            self._elapsed(name)

        self._alarms[name] = self._clock.call_at(when, ring)
