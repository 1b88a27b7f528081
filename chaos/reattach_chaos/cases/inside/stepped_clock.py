"""`SteppedClock`: our client's clocks in a process that was suspended: they are ahead of the machine's by what a file says.

A laptop that sleeps for an hour costs a test an hour. So the process stands still for a moment only, and finds then that both its
clocks went on for the time that was planned, as the simulation's do. No clock of the machine is touched.
"""

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from reattach.testing.seams import RealClock

LOOK_S = 0.05
"""So often the file is looked at: a step is seen that much late at most."""


class SteppedClock(RealClock):
    """The client's seam to time.

    Args:
        path: The file; that it is not there means 0.
        stepped: Called when a step was seen, and what is due by then has been rung.
    """

    def __init__(self, path: Path, stepped: Callable[[], None]) -> None:
        super().__init__()
        self._path = path
        self._stepped = stepped
        self._ahead = 0.0
        self._ahead = self._told()
        self._look_again()

    def now(self) -> float:
        """Return monotonic seconds."""
        return super().now() + self._ahead

    def wall(self) -> datetime:
        """Return the wall clock's time, in UTC."""
        return super().wall() + timedelta(seconds=self._ahead)

    def _look(self) -> None:
        """Look how far ahead the clocks are; a step is told behind all that is due by it."""
        before, self._ahead = self._ahead, self._told()
        if self._ahead != before:
            self.call_at(self.now(), self._stepped)
        self._look_again()

    def _look_again(self) -> None:
        self.call_at(self.now() + LOOK_S, self._look)

    def _told(self) -> float:
        """Return what the file says; one that is not there, or is just being written, says what it said before."""
        with contextlib.suppress(OSError, ValueError):
            return float(self._path.read_text())
        return self._ahead
