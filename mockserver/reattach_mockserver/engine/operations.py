"""What the authority knows of one side effect. It reads the log and decides nothing.

A call that stands without its outcome is `pending` while its run goes on, and `unknown` once that has settled. An
operation that waits for an answer is `pending` until it is certain that nothing will come of it.

Where the rules come from: PROTOCOL, section 5, operations. Checked by tests/mockserver/test_operations.py.
"""

import json
from typing import Any

from reattach_mockserver.event import SETTLED
from reattach_mockserver.logs.base import EventLog, OperationRecord, RunRecord
from reattach_mockserver.logs.pause import is_expired, responses_of


async def read_operation(log: EventLog, principal: str, operation_id: str, now: int) -> dict[str, Any] | None:
    """Return the principal's operation as it is at `now` ms, None if there is none."""
    found = await log.operation(principal, operation_id)
    run = None if found is None else await log.run(found.run_id)
    if found is None or run is None:
        return None
    status, result = await _waiting(log, found, run, now) if found.waits else _called(found, run)
    return {
        "id": found.id,
        "tool": found.tool,
        "status": status,
        "reversible": found.reversible,
        "run_id": found.run_id,
        "result": result,
    }


def _called(found: OperationRecord, run: RunRecord) -> tuple[str, Any]:
    if found.status == "pending" and run.status in SETTLED:
        return "unknown", None
    return found.status, None if found.result is None else json.loads(found.result)


async def _waiting(log: EventLog, found: OperationRecord, run: RunRecord, now: int) -> tuple[str, Any]:
    """Judge an operation that a pause asked for and that no call has begun."""
    response = _response(run, found.id)
    match response:
        case None:
            over = run.resolution is not None or is_expired(run, now) or run.status in SETTLED - {"requires_action"}
            return "failed" if over else "pending", None
        case {"result": result}:
            return "committed", result
        case {"decision": "approve"}:
            return "failed" if await _has_ended(log, run) else "pending", None
        case _:
            return "failed", None


def _response(run: RunRecord, operation_id: str) -> dict[str, Any] | None:
    actions = json.loads(run.outcome or "{}").get("required_actions", [])
    ids = [action["id"] for action in actions if action["operation_id"] == operation_id]
    return next((response for response in responses_of(run) if response["action_id"] in ids), None)


async def _has_ended(log: EventLog, run: RunRecord) -> bool:
    """Tell whether the job that was continued after this run goes no further."""
    while run.continued_by is not None and (after := await log.run(run.continued_by)) is not None:
        run = after
    if run.status == "requires_action":
        return run.resolution is not None
    return run.status in SETTLED
