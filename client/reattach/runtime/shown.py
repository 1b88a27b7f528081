"""What a person may see of a subscription's state: `Connection`. Pure."""

from __future__ import annotations

from reattach.core.state import Mode, State
from reattach.model import Connection, Phase

_PHASES: dict[Mode, Phase] = {
    "detached": "detached",
    "attaching": "attaching",
    "live": "live",
    "waiting": "waiting",
    "polling": "polling",
    "resyncing": "attaching",
    "parked": "live",
    "ending": "live",
    "done": "ended",
}


def connection_of(state: State, retry_in: float | None, replay_from: int) -> Connection:
    """Return the connection as it is.

    Args:
        state: The core's state.
        retry_in: Seconds until the next attempt, as drawn.
        replay_from: The sequence that the current attach asked after.
    """
    phase = _PHASES[state.mode]
    behind = None if state.head is None else max(0, state.head - state.admitted.sequence)
    if phase == "live" and behind:
        phase = "replaying"
    if phase == "waiting" and state.declined:
        phase = "polling"
    attempt = state.attempt if state.reason else 0
    return Connection(
        phase=phase,
        reason=state.reason,
        attempt=attempt,
        retry_in=retry_in if state.mode == "waiting" else None,
        replayed=max(0, state.admitted.sequence - replay_from) if phase in ("live", "replaying") else 0,
        behind=behind if phase in ("live", "replaying") else None,
    )
