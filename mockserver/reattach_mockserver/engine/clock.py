"""A run's time: when its next step is due, and what time its events carry.

A script's own time is counted in ms from its beginning. On the real clock a step waits for its time; on the virtual
one nothing waits and time is what the script says it is. In deterministic mode events carry the script's time on
either clock, so that two servers make the same bytes.

Checked by tests/mockserver/test_values.py.
"""

import time
from collections.abc import Callable

from reattach_mockserver.moment import moment, ms_of


class RunClock:
    """The clock of one run.

    Args:
        virtual: Waits take no time.
        scripted: Events carry the script's time, not the server's. Implied by `virtual`.
        created_at: When the run began.
        now: The server's own clock, in ms.
        ticks: The clock that waits are measured by, in seconds: one that never jumps.
    """

    def __init__(
        self,
        *,
        virtual: bool,
        scripted: bool,
        created_at: str,
        now: Callable[[], int],
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._virtual = virtual
        self._scripted = scripted or virtual
        self._created_ms = ms_of(created_at)
        self.now = now
        self._ticks = ticks
        self._began = ticks()

    def passed(self, at_ms: int) -> None:
        """Take note that the script's time `at_ms` was reached before: what comes next is counted from now."""
        self._began = self._ticks() - at_ms / 1000

    def delay(self, at_ms: int) -> float:
        """Return the seconds until the script's time is `at_ms`; 0 or less when it is."""
        return 0.0 if self._virtual else self._began + at_ms / 1000 - self._ticks()

    def time(self, at_ms: int) -> str:
        """Return the time that an event of the script's time `at_ms` carries."""
        return moment(self.ms(at_ms))

    def ms(self, at_ms: int) -> int:
        """Return the same in ms since 1970."""
        return self._created_ms + at_ms if self._scripted else self.now()
