"""What the core asks the server for beside the stream: a run's status and its snapshot. Each answer, or failure, is one input.

Nothing here decides how often or what follows; that is the core's. `era` and `attempt` come back as they were given, so that the
core can drop what was asked for too early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reattach.core.messages import Refusal, SnapshotFailed, SnapshotRead, StatusFailed, StatusRead, Why
from reattach.profiles.base import Unreadable
from reattach.runtime.calls import Limit, Refused

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine


async def status(engine: Engine, run_id: str, era: int, attempt: int) -> StatusRead | StatusFailed:
    """Read the run's status."""
    try:
        answer = await engine.calls.make(engine.profile.status(run_id), Limit(attempts=3))
        reading = engine.profile.reading(run_id, answer.body)
    except Refused as error:
        return StatusFailed(era, attempt, error.refusal)
    except Unreadable as error:
        return StatusFailed(era, attempt, Refusal(Why.FOREIGN, error.detail))
    return StatusRead(era, attempt, reading.epoch, reading.head, reading.status, reading.outcome)


async def snapshot(engine: Engine, run_id: str, era: int) -> SnapshotRead | SnapshotFailed:
    """Read the server's state at a boundary."""
    call = engine.profile.snapshot(run_id)
    if call is None:
        return SnapshotFailed(era, Refusal(Why.OTHER, f"{engine.profile.name} has no snapshot"))
    try:
        answer = await engine.calls.make(call, Limit(attempts=1))
        boundary, state = engine.profile.boundary(run_id, answer.body)
    except Refused as error:
        return SnapshotFailed(era, error.refusal)
    except Unreadable as error:
        return SnapshotFailed(era, Refusal(Why.FOREIGN, error.detail))
    return SnapshotRead(era, boundary, state)
