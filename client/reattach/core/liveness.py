"""Liveness: what counts as alive, and for how long silence may last.

Any byte is liveness, comments too; only events are progress. The limit follows the heartbeat that the server states; three of
them, so that one lost and one late heartbeat cut nothing. An event that is still arriving (`Heard(growing=True)`) is neither
silence nor a server that hides events.
"""

from __future__ import annotations

from reattach.policy import Policy

BEATS = 3.0
BEHIND_LIMIT = 5.0
"""Seconds that a connected stream may leave out events which the status already knows (a proxy that buffers, a lost wake-up)."""


def idle_limit(policy: Policy, heartbeat: float | None) -> float:
    """Return the seconds of silence after which an open connection is lost.

    Args:
        policy: Its `idle_timeout` holds until a heartbeat is known.
        heartbeat: Seconds between heartbeats as the server states them; None or not positive for unknown.
    """
    if heartbeat is None or not heartbeat > 0:
        return policy.idle_timeout
    return BEATS * heartbeat
