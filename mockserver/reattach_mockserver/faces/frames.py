"""Events and control frames as bytes of an event stream. Pure.

The text of `data` is the event's own bytes, made when it was appended. Where the rules come from: PROTOCOL, section 4;
the WHATWG's event stream format. Checked by tests/mockserver/test_stream.py.
"""

import re
from collections.abc import Mapping
from typing import Any

from reattach_mockserver.event import Stored, json_text
from reattach_mockserver.scenarios.script import LineEnd

_RETRY_MS = 1000
_ENDS: Mapping[LineEnd, bytes] = {"lf": b"\n", "crlf": b"\r\n", "cr": b"\r"}
_UNNAMED = frozenset({"open", "error"})  # an EventSource would take them for its own
_NAME = re.compile(r"[^\x00\r\n\ud800-\udfff]+")


class Frames:
    """Encodes for one stream: its line end, its epoch, and whether events carry their type's name."""

    def __init__(self, epoch: str, line_end: LineEnd, *, named: bool) -> None:
        self._epoch = epoch.encode()
        self._named = named
        self._end = _ENDS[line_end]

    def event(self, event: Stored) -> bytes:
        """Return one event's block."""
        end = self._end
        name = b""
        if self._named and event.type not in _UNNAMED and _NAME.fullmatch(event.type):
            name = b"event: " + event.type.encode() + end
        return b"id: %b.%d%b%bdata: %b%b%b" % (self._epoch, event.sequence, end, name, event.body, end, end)

    def attached(self, data: Mapping[str, Any]) -> bytes:
        """Return the block that every stream begins with."""
        return self._control("stream.attached", data)

    def closing(self, reason: str) -> bytes:
        """Return the block before the server closes a healthy stream."""
        return self._control("stream.closing", {"reason": reason})

    def heartbeat(self) -> bytes:
        """Return a comment line, with no blank line after it: that would be an empty event to some."""
        return b": still here" + self._end

    def _control(self, name: str, data: Mapping[str, Any]) -> bytes:
        lines = (b"retry: %d" % _RETRY_MS, b"event: " + name.encode(), b"data: " + json_text(data).encode(), b"")
        return b"".join(line + self._end for line in lines)
