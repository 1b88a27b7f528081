"""The messages of the WebSocket form: strict reading, and texts to send. Pure.

An event's text is the event's own bytes, made when it was appended. Where the rules come from: PROTOCOL, section 6.
Checked by tests/mockserver/test_socket.py.
"""

import json
from collections.abc import Mapping
from typing import Any

from reattach_mockserver.event import Stored, json_text
from reattach_mockserver.faces.canonical import NotJson, parse_json
from reattach_mockserver.faces.problem import Refusal, invalid_request

SUBPROTOCOL = "reattach.v1"
RETRY_MS = 1000

NORMAL = 1000
GOING = 1001
BAD_MESSAGE = 4400
_CLOSE_CODES = {"unauthenticated": 1008, "body_too_large": 1009, "overloaded": 1013}


def close_code(refusal: Refusal) -> int:
    """Return the code that the server closes with after an `error` that answers nothing."""
    return _CLOSE_CODES.get(refusal.code, BAD_MESSAGE)


def read_message(message: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """Return the object of a `websocket.receive` message.

    Raises:
        Refusal: It is binary, longer than `limit` bytes, or no JSON object with a `type`.
    """
    text = message.get("text")
    if text is None:
        raise invalid_request("messages are text, not binary")
    body = text.encode("utf-8", "surrogatepass")
    if len(body) > limit:
        raise Refusal("body_too_large", f"the message has more than {limit} bytes")
    try:
        value = parse_json(body)
    except NotJson as error:
        raise invalid_request(f"the message is not JSON with one meaning: {error}") from None
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise invalid_request("a message is a JSON object with a 'type'")
    return value


def told(kind: str, **members: Any) -> str:
    """Return the text of a message."""
    return json_text({"type": kind, **members})


def event_text(epoch: str, event: Stored) -> str:
    """Return the message of one event."""
    return f'{{"type":"event","cursor":"{epoch}.{event.sequence}","event":{event.body.decode()}}}'


def started_text(run_body: bytes, *, replayed: bool, heartbeat_ms: int) -> str:
    """Return the answer to a `start`; `run_body` is the run's JSON."""
    flag = "true" if replayed else "false"
    return f'{{"type":"started","replayed":{flag},"heartbeat_ms":{heartbeat_ms},"run":{run_body.decode()}}}'


def refused_text(kind: str, refusal: Refusal) -> str:
    """Return an `error` or a `resume_rejected`: the problem's members; a `Retry-After` as `retry_after_ms`."""
    problem = json.loads(refusal.body())
    wait = refusal.headers.get("Retry-After")
    if wait is not None:
        problem["retry_after_ms"] = int(wait) * 1000
    return told(kind, **{name: value for name, value in problem.items() if name != "type"})
