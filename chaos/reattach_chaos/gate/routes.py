"""What a request is for: its route, its run, its cursor; by the protocol's paths under any prefix.

Another server's paths are another `Dialect`: a value with the function that tells routes, and the types of events that settle a
run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

from reattach_chaos.gate.framing import Head
from reattach_chaos.history.foreign import json_of
from reattach_chaos.history.wire import Route

Classified: TypeAlias = tuple[Route, str | None]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How requests and events of a server are understood.

    Attributes:
        classify: A request's head and its body → its route, and the run that it names.
        settling: The type of an event that settles its run → the status.
    """

    classify: Callable[[Head, bytes], Classified]
    settling: dict[str, str]


def classify(head: Head, body: bytes = b"") -> Classified:
    """Return the route of a request of the native protocol. A create that continues a paused run is its answer."""
    url = urlsplit(head.target)
    parts = [unquote(part) for part in url.path.split("/") if part]
    match head.method, parts:
        case "POST", [*_, "runs"]:
            told = json_object(body)
            return ("answer" if told.get("continues") else "create"), None
        case "POST", [*_, "runs", run, "cancel"]:
            return "cancel", run
        case "GET", [*_, "runs", run, "events"]:
            return "stream", run
        case "GET", [*_, "runs", run, "snapshot"]:
            return "snapshot", run
        case "GET", [*_, "sessions", _, "runs"]:
            return "list", None
        case "GET", [*_, "runs"]:
            return "list", None
        case "GET", [*_, "runs", run]:
            return "status", run
        case _:
            return "other", None


NATIVE = Dialect(
    classify,
    {
        "run.completed": "completed",
        "run.failed": "failed",
        "run.cancelled": "cancelled",
        "run.paused": "requires_action",
    },
)


def cursor_of(head: Head) -> str | None:
    """Return the cursor that a request asks after; the header goes before the query."""
    query = parse_qs(urlsplit(head.target).query, keep_blank_values=True)
    return head.get("last-event-id") or next(iter(query.get("after", [])), None)


def json_object(data: bytes) -> dict[str, Any]:
    """Return a JSON object, empty where it is none."""
    try:
        value = json_of(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
