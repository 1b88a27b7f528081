"""uvicorn's HTTP protocol with bounds: in time, in bytes and in number, for whoever connects; and refusals that are problems.

What uvicorn leaves open: a connection that says nothing, a head or body that comes a byte at a time, a head without end, a
thousand requests in one packet, an upgrade that its WebSocket library drops without a word, a reader that takes nothing for
good. Each ends here, in bounded time and memory, with an answer if one can be read. It knows no path and no run: what a whole
request is answered with is the application's.

Where the rules come from: PROTOCOL, sections 4 and 8; RFC 9110, 15.5.9 (408), RFC 9112, 9.6 (closing so that the answer can be
read). Checked by tests/mockserver/test_guard.py and tests/system/test_hostile_bytes.py.
"""

import asyncio
import resource
import sys
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from reattach_mockserver.faces.problem import Refusal, invalid_request, overloaded
from reattach_mockserver.patience import Patience
from reattach_mockserver.stall import Stall

_HEAD_BYTES = 262_144  # beyond it nothing is parsed; the application refuses far less, in its own words
_UNREAD_BYTES = 16_777_216  # of a body that was refused: read and thrown away, so that the refusal is read
_PIPELINED = 32  # requests of one connection that wait for the answers before them
_UPGRADE_LINES, _UPGRADE_LINE = 100, 8_000  # below what the WebSocket library drops without a word
_OWN_FILES = 64  # descriptors that the process needs beside its connections


def most_connections(patience: Patience) -> int:
    """Return how many connections may be open at once."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return patience.connections or sys.maxsize
    return max(min(patience.connections or files, files - _OWN_FILES), 1)


class Guard(HttpToolsProtocol):
    """One connection. Make a class of it with `patience` set (`host.py`)."""

    patience = Patience()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._waits_for = ""
        self._part = ""  # what of a request is coming: its head, its body, or nothing
        self._taken = 0  # bytes since there was last a whole request
        self._refused = False
        self._unanswered: list[RequestResponseCycle] = []  # of several at once, uvicorn forgets the one being answered
        self._stall = Stall(self.patience.stall)

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        """Begin; too many are told so."""
        super().connection_made(transport)
        if len(self.connections) > most_connections(self.patience):
            self._refuse(overloaded("too many connections are open"))
        else:
            self._wait("head", self.patience.head)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._wait("", None)
        self._stall.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Note that the reader is behind."""
        super().pause_writing()
        self._stall.begin(self.transport)

    def resume_writing(self) -> None:
        """Note that it has caught up."""
        self._stall.end()
        super().resume_writing()

    # What comes

    def data_received(self, data: bytes) -> None:
        """Parse what came, and see what is waited for now."""
        self._taken += len(data)
        if self._refused:
            if self._taken > _UNREAD_BYTES:
                self.transport.abort()
            return
        super().data_received(data)
        if self._is_over():
            return
        match self._part:
            case "body":
                self._wait("body", self.patience.body)
                if self._answering is None and self._taken > _UNREAD_BYTES:
                    self.transport.abort()
            case "" if self._answering is not None:
                self._wait("", None)  # for us
            case _:
                self._wait("head", self.patience.head)
                if self._taken > _HEAD_BYTES:
                    self._refuse(Refusal("headers_too_large", f"the head has more than {_HEAD_BYTES} bytes"))

    def _is_over(self) -> bool:
        """Tell whether this connection was refused, closed or handed over by what has just come."""
        return self._refused or self.transport.is_closing() or self.transport.get_protocol() is not self

    @property
    def _answering(self) -> RequestResponseCycle | None:
        """The newest request whose answer is not complete; uvicorn has none before the first, whatever it declares."""
        cycle: RequestResponseCycle | None = self.cycle
        return None if cycle is None or cycle.response_complete else cycle

    def _wait(self, what: str, seconds: float | None) -> None:
        """Wait for something, from now on unless it is waited for already; `seconds` None for nothing."""
        if what == self._waits_for:
            return
        self._waits_for = what
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None:
            self._timer = self.loop.call_later(seconds, self._late, what, seconds)

    def _late(self, what: str, seconds: float) -> None:
        self._timer = None
        answered = what == "body" and self._answering is None
        if self._taken == 0 or answered or self.transport.is_closing():
            self.transport.abort()  # there is nothing to answer, or nothing more
        else:
            self._refuse(Refusal("request_timeout", f"the {what} of the request did not come within {seconds:g} s"))

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._part = "head"

    def on_headers_complete(self) -> None:
        """Take a head in; not one more than may wait."""
        if len(self.pipeline) >= _PIPELINED:
            raise ValueError("too many requests at once")  # the parser gives up, which is answered with 400
        super().on_headers_complete()
        self._part = "body"
        newest = self._answering
        self._unanswered = [cycle for cycle in self._unanswered if not cycle.response_complete and cycle is not newest]
        if newest is not None:
            self._unanswered.append(newest)

    def on_message_complete(self) -> None:
        """End a request."""
        super().on_message_complete()
        self._part = ""
        self._taken = 0

    # Refusing what is no request for the application

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP; `msg` is uvicorn's and says no more."""
        self._refuse(invalid_request("this is not HTTP/1.1, or more of it at once than is taken"))

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over, if the WebSocket library will have it."""
        self._wait("", None)
        sizes = [len(name) + len(value) for name, value in self.scope["headers"]]
        if len(sizes) > _UPGRADE_LINES or max([*sizes, len(self.url)]) > _UPGRADE_LINE:
            self._refuse(
                Refusal(
                    "headers_too_large",
                    f"an upgrade has at most {_UPGRADE_LINES} headers of at most {_UPGRADE_LINE} bytes each",
                )
            )
        else:
            super().handle_websocket_upgrade()

    def _refuse(self, refusal: Refusal) -> None:
        """Say no, and close so that it can be read: nothing more is sent, what still comes is thrown away for a moment."""
        self._refused = True
        unanswered = [cycle for cycle in self._unanswered if not cycle.response_complete]
        for cycle in unanswered:
            cycle.disconnected = True  # whatever it still sends goes nowhere
            cycle.message_event.set()
        self.pipeline.clear()
        self._unset_keepalive_if_required()
        if any(cycle.response_started for cycle in unanswered):
            self.transport.abort()  # half an answer stands there: breaking off shows that it is none
            return
        self.transport.write(refusal.message())
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._taken, self._waits_for = 0, "linger"
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self.patience.linger, self.transport.abort)
