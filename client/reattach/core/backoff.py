"""Backoff: how long to wait before the next attempt, as values. Never waits, draws no random number.

A wait is a `Window`; the runtime draws uniformly from it ("full jitter"), so jitter cannot vanish at the ceiling (B29: a cap
applied after the jitter made 2,000 draws all 60.0). Rules, from contract.md promise 9: at once only after the unannounced loss of
a connection that delivered something new; else [floor, max(base, retry:) * 2^n] up to the ceiling; Retry-After is a floor even
above the ceiling; n starts again only after progress (a newly committed event), never after a 200.
"""

from __future__ import annotations

from typing import NamedTuple

from reattach.policy import Policy

_WIDEST = 32  # doublings; 2^32 of any base is beyond every ceiling, and the number must not grow for ever


class Window(NamedTuple):
    """Wait for a time drawn uniformly from [low, high] seconds."""

    low: float
    high: float


class Backoff(NamedTuple):
    """How often we waited since the last progress, and the server's own wish (`retry:`, seconds; 0 for none)."""

    waits: int = 0
    hint: float = 0.0

    def hinted(self, seconds: float) -> Backoff:
        """Take the stream's `retry:` as the new base; floor and ceiling are applied when it is used (B11)."""
        return self._replace(hint=seconds)

    def progressed(self) -> Backoff:
        """Start again from the narrowest window; the server's wish stays."""
        return self._replace(waits=0)

    def at_once(self) -> tuple[Window, Backoff]:
        """Return no wait at all; the attempt after it gets the first window."""
        return Window(0.0, 0.0), self

    def delayed(
        self, policy: Policy, *, retry_after: float | None = None, counted: bool = True
    ) -> tuple[Window, Backoff]:
        """Return the next window and the backoff to use after it.

        Args:
            policy: Floor, base and ceiling, in seconds.
            retry_after: The server's floor in seconds. The window begins there, and is then no narrower than the base, so that
                clients that were sent away together do not come back together.
            counted: False for a planned close: the next window is as wide as this one.
        """
        base = max(policy.retry_base, min(self.hint, policy.retry_ceiling))
        high = min(policy.retry_ceiling, base * 2.0 ** min(self.waits, _WIDEST))
        low = policy.retry_floor
        if retry_after is not None and retry_after > low:
            low = retry_after
            high = max(high, low + policy.retry_base)
        return Window(low, max(low, high)), self._replace(waits=self.waits + 1 if counted else self.waits)
