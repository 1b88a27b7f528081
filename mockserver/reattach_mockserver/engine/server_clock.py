"""The server's own clock, which a test may move forward.

Retention, expiry, overload and the waits of scenarios all look at it, so one `advance` brings all of them closer. It never
goes back, and nothing but a test moves it. Heartbeats, the age of streams and long polls are about bytes on a wire and keep
real time.

Checked by tests/mockserver/admin/test_acting.py.
"""

import time
from collections.abc import Callable


class ServerClock:
    """A clock of the day and one that never jumps by itself, moved forward together.

    Args:
        day: Where the time of day comes from, in ms since 1970.
    """

    def __init__(self, day: Callable[[], int]) -> None:
        self._day = day
        self._ahead_ms = 0

    @property
    def ahead_ms(self) -> int:
        """How far it was moved, in ms."""
        return self._ahead_ms

    def now(self) -> int:
        """Return the time of day, in ms since 1970."""
        return self._day() + self._ahead_ms

    def ticks(self) -> float:
        """Return the seconds that waits are measured by."""
        return time.monotonic() + self._ahead_ms / 1000

    def advance(self, ms: int) -> None:
        """Move it forward."""
        self._ahead_ms += ms
