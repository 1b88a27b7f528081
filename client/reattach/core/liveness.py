"""Liveness: what counts as alive, and for how long silence may last.

Any byte is liveness, comments too; only events are progress. The limit follows the heartbeat that the server states, else the
one that was observed; three of them, so that one lost and one late heartbeat cut nothing. An event that is still arriving
(`Heard(growing=True)`) is neither silence nor a server that hides events.
"""

from __future__ import annotations

from reattach.policy import Policy

BEATS = 3.0
OBSERVED = 3
"""Heartbeats in a row, with nothing else between, until a server that does not state its heartbeat is taken to have one."""
LEAST_OBSERVED = 5.0
"""Seconds; signs of life that come faster are a flow, not a promise: when it ends, nothing was broken."""
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


def observed(beats: tuple[float, ...], beat: float) -> tuple[tuple[float, ...], float | None]:
    """Return the newest observed heartbeats with one more, and what they tell: seconds, None as long as they are too few.

    The longest of them counts, so that a server whose heart beats unevenly is not cut for it.
    """
    beats = (*beats, beat)[-OBSERVED:]
    return beats, max(LEAST_OBSERVED, *beats) if len(beats) == OBSERVED else None
