"""A run's outcome as a JSON value and back, for who keeps what a step came to outside of this process.

Checked by tests/mockserver/engines/test_seat.py.
"""

from typing import Any

from reattach_mockserver.engine.work import Completed, Failed, Outcome, Paused


def json_of(outcome: Outcome) -> dict[str, Any]:
    """Return a JSON value that stands for the outcome."""
    match outcome:
        case Completed(result):
            return {"completed": result}
        case Failed(code, message, data):
            return {"failed": {"code": code, "message": message, "data": data}}
        case Paused(actions):
            return {"paused": [dict(action) for action in actions]}


def outcome_of(value: Any) -> Outcome:
    """Return the outcome that a JSON value stands for.

    Raises:
        ValueError: It stands for none.
    """
    match value:
        case {"completed": result}:
            return Completed(result)
        case {"failed": {"code": code, "message": message, "data": data}}:
            return Failed(code, message, data)
        case {"paused": [*actions]}:
            return Paused(actions)
        case _:
            raise ValueError(f"a run cannot come to {value!r}")
