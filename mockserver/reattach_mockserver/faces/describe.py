"""Runs and sessions as JSON objects. Pure, but for the clock that is handed in.

Where the rules come from: PROTOCOL, sections 1 and 3. Checked by tests/mockserver/test_reads.py.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from reattach_mockserver.event import json_text
from reattach_mockserver.logs.base import RunRecord, SessionRecord
from reattach_mockserver.logs.pause import with_resolutions


def run_json(run: RunRecord, now: int) -> dict[str, Any]:
    """Return the run as it is read at `now` ms."""
    outcome = json.loads(run.outcome) if run.outcome is not None else {}
    return {
        "id": run.id,
        "session_id": run.session_id,
        "epoch": run.epoch,
        "status": run.status,
        "first_sequence": run.first_sequence,
        "last_sequence": run.last_sequence,
        "cursor": f"{run.epoch}.{run.last_sequence}",
        "created_at": run.created_at,
        "ended_at": run.ended_at,
        "required_actions": _actions(outcome.get("required_actions"), run, now),
        "result": outcome.get("result"),
        "error": outcome.get("error"),
        "release": run.release,
        "continues": run.continues,
        "continued_by": run.continued_by,
        "metadata": None if run.metadata is None else json.loads(run.metadata),
    }


def session_json(session: SessionRecord) -> dict[str, Any]:
    """Return the session."""
    return {"id": session.id, "created_at": session.created_at, "last_run_id": session.last_run_id}


def etag_of(body: bytes) -> str:
    """Return the entity tag of a representation: equal bytes, equal tag."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def body_of(run: RunRecord, now: int) -> bytes:
    """Return the run's representation."""
    return json_text(run_json(run, now)).encode()


def _actions(actions: Sequence[dict[str, Any]] | None, run: RunRecord, now: int) -> list[dict[str, Any]] | None:
    return None if actions is None else with_resolutions(actions, run, now)
