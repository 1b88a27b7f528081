"""The native protocol's WebSocket (mockserver/PROTOCOL.md, section 6): what is said first, and what the messages and closes mean.

Runs are created, read and cancelled by HTTP; a socket only resumes. A resume that is refused is a refusal, never another start: the
answer `started`, which we never asked for, is no answer of this protocol. An event's text is taken out of its message as it came,
so that it is the same bytes, and the same digest, as on every other way.

Close codes come to be judged only where no `error` or `closing` said more before. Pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reattach.core.messages import Arrival, Closing, Received, Refusal, Refused, Why
from reattach.model import Event
from reattach.profiles.base import Call, Noted, Told
from reattach.profiles.native_reader import NativeReader
from reattach.profiles.native_refusals import CODES, refusal_of
from reattach.profiles.native_values import by_status, json_members, maybe, maybe_int, quoted
from reattach.wire.frame import Frame

PATH = "/v1/socket"
SUBPROTOCOL = "reattach.v1"

_CODES: Mapping[str, Why] = {
    **CODES,
    "unauthenticated": Why.UNAUTHENTICATED,
    "forbidden": Why.FORBIDDEN,
    "internal": Why.BUSY,
}
# RFC 6455, 7.4, the registry of close codes, and ours. 1006 is no close, but its absence; a planned one is as `closing` is.
_PLANNED = frozenset({1001, 1012})
_CLOSES: Mapping[int, Why] = {
    1002: Why.FOREIGN,
    1003: Why.FOREIGN,
    1007: Why.FOREIGN,
    1008: Why.UNAUTHENTICATED,
    1009: Why.FOREIGN,
    1010: Why.FOREIGN,
    1011: Why.BUSY,
    1013: Why.BUSY,
    1014: Why.BUSY,
    3000: Why.UNAUTHENTICATED,
    3003: Why.FORBIDDEN,
}
_PRIVATE = range(4000, 5000)  # somebody's own: not this protocol, which uses 4400 and says `error` first


class NativeSocket:
    """The way to a run's events over a WebSocket."""

    def attach(self, run_id: str, after: str | None) -> Call:
        """Return the upgrade, and as its body the first message."""
        first = {"type": "resume", "run_id": run_id, "cursor": after}
        return Call("GET", PATH, {"Sec-WebSocket-Protocol": SUBPROTOCOL}, first)

    def refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
        """Sort an answer that is no upgrade. A server, or a proxy, that has no WebSocket there is not this protocol."""
        told = refusal_of(status, headers, body)
        if told.why in (Why.NOT_FOUND, Why.OTHER, Why.EXPIRED):
            return told._replace(why=Why.FOREIGN, detail=f"no WebSocket at {PATH}: {told.detail}")
        return told

    def reader(self, run_id: str) -> SocketReader:
        """Return a reader for one subscription."""
        return SocketReader(run_id)


class SocketReader:
    """Reads the messages of one socket."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._events = NativeReader(run_id)
        self._begun = False

    def recall(self, events: Iterable[Event]) -> None:
        """Take in which of the newest messages already gave their text in deltas."""
        self._events.recall(events)

    def read(self, frames: Sequence[Frame]) -> tuple[Told, ...]:
        """Return what the messages say, in order, neighbouring events in one `Received`; nothing after what ends the socket."""
        told: list[Told] = []
        batch: list[Arrival] = []
        for frame in frames:
            kind, meaning = self._meaning(frame)
            if not self._begun:
                self._begun = True
                told.append(Noted("first_message", kind))
            if isinstance(meaning, Arrival):
                batch.append(meaning)
            elif meaning is not None:
                if batch:
                    told.append(Received(tuple(batch)))
                    batch = []
                told.append(meaning)
                if isinstance(meaning, Closing | Refused):
                    return tuple(told)
        if batch:
            told.append(Received(tuple(batch)))
        return tuple(told)

    def _meaning(self, frame: Frame) -> tuple[str, Arrival | Told | None]:
        """Return a message's type, for a person, and what it says."""
        if frame.event == "close":
            return "close", _closed(json.loads(frame.data))
        if frame.event == "binary":
            return "binary", _foreign("a message that is not text")
        try:
            members = json_members(frame.data)
        except ValueError as error:
            return "not JSON", _foreign(f"a message that is no JSON object ({error}: {quoted(frame.data.encode())})")
        message = {name: value for name, (value, _) in members.items()}
        match message.get("type"):
            case "event":
                return "event", self._event(message, members["event"][1] if "event" in members else "")
            case "resume_ok":
                return "resume_ok", self._resumed(message)
            case "resume_rejected" | "error" as kind:
                return kind, Refused(_refused(message))
            case "closing":
                wait = _seconds(message.get("retry_ms"))
                return "closing", Closing(maybe(message, "reason") or "max_age", wait)
            case "started":
                return "started", _foreign("a start that nobody asked for")
            case kind:
                return str(kind)[:40], None  # a newer server's message

    def _event(self, message: Mapping[str, Any], text: str) -> Arrival | Refused:
        event = message.get("event")
        found: Arrival | Refusal | None = None
        if type(event) is dict:
            found = self._events.arrival(event, text, maybe(message, "cursor") or "")
        if isinstance(found, Arrival):
            return found
        return _foreign("an event without id, sequence and type") if found is None else Refused(found)

    def _resumed(self, message: dict[str, Any]) -> Told:
        return self._events.attached({"protocol": 1, **message})  # the subprotocol, `reattach.v1`, has named it


def _foreign(detail: str) -> Refused:
    return Refused(Refusal(Why.FOREIGN, detail))


def _refused(message: Mapping[str, Any]) -> Refusal:
    """Sort a `resume_rejected` or an `error` by its code, else by the HTTP status that it names."""
    code = maybe(message, "code")
    status = maybe_int(message, "status")
    why = _CODES.get(code or "") or (Why.OTHER if status is None else by_status(status))
    detail = maybe(message, "detail") or maybe(message, "title") or f"{message.get('type')} ({code or 'no code'})"
    return Refusal(
        why,
        detail,
        status,
        code,
        _seconds(message.get("retry_after_ms")),
        maybe(message, "epoch"),
        maybe_int(message, "first_sequence"),
        maybe_int(message, "last_sequence"),
    )


def _closed(close: Mapping[str, Any]) -> Closing | Refused | None:
    """Return what a close says by its code alone; None: that the socket ended."""
    code, reason = close["code"], close["reason"]
    detail = f"the server closed the WebSocket with {code}{f' ({reason})' if reason else ''}"
    if code in _PLANNED:
        return Closing(f"close code {code}")
    why = Why.FOREIGN if code in _PRIVATE else _CLOSES.get(code)
    return None if why is None else Refused(Refusal(why, detail))


def _seconds(ms: object) -> float | None:
    """Return milliseconds as seconds, None for what is no time."""
    good = isinstance(ms, int | float) and not isinstance(ms, bool) and 0 <= ms <= 1e12 and math.isfinite(ms)
    return ms / 1000.0 if good and isinstance(ms, int | float) else None
