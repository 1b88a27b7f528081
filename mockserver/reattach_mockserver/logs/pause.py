"""A pause: what became of the actions that a run settled with, and who may continue it. Shared by all logs; pure.

`RunRecord.pause` is the JSON text of a `PauseRecord`, set with the settling event; `RunRecord.answers` that of what it was
answered with, set by the create of its continuation and never again. One expired action expires the pause, and what had
not been resolved by then stays expired.

Where the rules come from: PROTOCOL, section 5. Checked by tests/contracts/test_event_logs.py and
tests/mockserver/test_continue.py.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from reattach_mockserver.logs.base import Answers, NotAnswered, RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRecord:
    """Where in its script a run paused, and until when it can be continued.

    `expires_at`: when the first of its actions expires. `stale_at`: when `next_release` takes over, so that what was
    approved is to be looked at again. Both in ms of the server's own clock, None for never: a script's may be virtual.
    """

    path: str
    expires_at: int | None = None
    stale_at: int | None = None
    next_release: str | None = None

    def text(self) -> str:
        """Return the JSON text that a record keeps."""
        return json.dumps(asdict(self))


def pause_of(run: RunRecord) -> PauseRecord | None:
    """Return the run's pause, None if it is not paused."""
    return None if run.pause is None else PauseRecord(**json.loads(run.pause))


def responses_of(run: RunRecord) -> list[dict[str, Any]]:
    """Return the responses that the run was continued with, as they were sent."""
    responses: list[dict[str, Any]] = [] if run.answers is None else json.loads(run.answers)["responses"]
    return responses


def release_of(run: RunRecord, at: int) -> str | None:
    """Return the release that would execute the run, or its continuation, at `at` ms."""
    pause = pause_of(run)
    changed = pause is not None and pause.stale_at is not None and pause.stale_at <= at
    return pause.next_release if pause is not None and changed else run.release


def is_expired(run: RunRecord, at: int) -> bool:
    """Tell whether the run's pause has expired at `at` ms, or had when it was resolved."""
    if run.resolution is not None and run.resolved_at is not None:
        at = run.resolved_at
    pause = pause_of(run)
    return pause is not None and pause.expires_at is not None and pause.expires_at <= at


def answered(paused: RunRecord, by: str, answers: Answers) -> RunRecord | None:
    """Return the paused run as it is once the run `by` continues it; None if it was answered so before.

    Raises:
        NotAnswered: It is not paused, or what it waited for is resolved otherwise.
    """
    if paused.answers is not None:
        if json.loads(paused.answers)["digest"] == answers.digest:
            return None
        raise NotAnswered("action_resolved")
    if paused.status != "requires_action":
        raise NotAnswered("not_paused")
    if is_expired(paused, answers.at):
        raise NotAnswered("action_expired")
    if paused.resolution is not None:
        raise NotAnswered("action_expired" if paused.resolution == "expired" else "action_resolved")
    kept = f'{{"digest":"{answers.digest}","responses":{answers.responses}}}'
    return replace(paused, answers=kept, resolution="answered", resolved_at=answers.at, continued_by=by)


def resolved(run: RunRecord, resolution: str, at: int) -> RunRecord:
    """Return the run with its actions come to `resolution`, unless they came to something already."""
    waits = run.status == "requires_action" and run.resolution is None
    return replace(run, resolution=resolution, resolved_at=at) if waits else run


def with_resolutions(actions: Sequence[Mapping[str, Any]], run: RunRecord, now: int) -> list[dict[str, Any]]:
    """Return the run's actions with what became of each, as of `now` ms."""
    became = {response["action_id"]: resolution_by(response) for response in responses_of(run)}
    word = "expired" if is_expired(run, now) else run.resolution
    return [{**action, "resolution": became.get(action["id"], word)} for action in actions]


def resolution_by(response: Mapping[str, Any]) -> str:
    """Return what an action came to by this response."""
    return {"approve": "approved", "reject": "rejected"}.get(response.get("decision", ""), "answered")
