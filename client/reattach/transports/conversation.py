"""One WebSocket as values: bytes that came become frames, what is to be sent becomes bytes. No I/O, no waiting, no vendor.

The framing itself (RFC 6455: masks, fragments, control frames, sizes, close codes) is the `websockets` library's, in its form
without I/O; so the same code runs on asyncio, on trio and under the blocking face. What is ours: a text message is a `Frame`, and
so is the other side's close, for the profile to judge; one message above the limit is the end; no extension is ever offered, so
nothing can be blown up by compression.

Checked by tests/client/transports/test_conversation.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from websockets.client import ClientProtocol
from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame as Piece
from websockets.frames import Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from reattach.wire.frame import Frame

CLEAN = (1000, 1005)
"""Close codes by which a server that has nothing more to say leaves: "normal", and none at all."""
WRAPPING = 1024
"""Bytes that a message may be longer than its event: type, cursor, names."""

_ANYWHERE = parse_uri("ws://server/")  # which server it is, is the HTTP library's affair
_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class Ended(NamedTuple):
    """How the conversation ended: the close code (1006: without a close), the other side's words or what was wrong."""

    code: int
    detail: str

    @property
    def clean(self) -> bool:
        """Whether the other side said that it closes."""
        return self.code != 1006

    def __str__(self) -> str:
        words = "clean" if self.clean else "unclean"
        return f"{self.code}, {words}: {self.detail}" if self.detail else f"{self.code}, {words}"


class Conversation:
    """One connection's messages, from the upgrade on.

    Args:
        subprotocol: The one that the server must choose.
        max_event_bytes: A message that is more than some wrapping above it ends the conversation, before it is taken in.
    """

    def __init__(self, subprotocol: str, *, max_event_bytes: int) -> None:
        self.limit = max_event_bytes
        self.oversize = False
        """A message is above the limit; what came before it was handed out."""
        self.ended: Ended | None = None
        """Set once nothing more comes."""
        self.growing = False
        """Whether what came last is a part of a message that is still arriving."""
        self._subprotocol = subprotocol
        self._protocol = ClientProtocol(
            _ANYWHERE, subprotocols=[Subprotocol(subprotocol)], max_size=max_event_bytes + WRAPPING
        )
        self._kind: Opcode | None = None
        self._parts = bytearray()

    # the upgrade --------------------------------------------------------------------------------------------------

    def upgrade(self) -> dict[str, str]:
        """Return the headers that ask for the upgrade."""
        names = ("Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol")
        asked = self._protocol.connect().headers
        return {name: asked[name] for name in names}

    def upgraded(self, headers: Mapping[str, str]) -> str | None:
        """Take the headers of a 101; return why they are no upgrade of ours, None if they are."""
        named = {name: value for name, value in headers.items() if name.lower() in _ANSWERED}
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self._protocol.receive_data(f"HTTP/1.1 101 Switching Protocols\r\n{head}\r\n".encode("utf-8", "replace"))
        self._protocol.events_received()
        fault = self._protocol.handshake_exc
        if fault is not None:
            return f"no WebSocket of ours ({fault})"
        if self._protocol.subprotocol != self._subprotocol:
            return f"a WebSocket without the subprotocol {self._subprotocol}"
        return None

    # after it -----------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> tuple[Frame, ...]:
        """Return the frames that these bytes complete; b"" is the end of the connection."""
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        frames = []
        pieces = self._protocol.events_received()
        for piece in pieces:
            assert isinstance(piece, Piece)
            frame = self._frame(piece)
            if frame is not None:
                frames.append(frame)
        self.growing = self._kind is not None or (bool(data) and not pieces)
        fault = self._protocol.parser_exc
        if fault is not None and self.ended is None:
            self.oversize = isinstance(fault, PayloadTooBig)
            self.ended = Ended(1006, str(fault) if data else "the connection ended without a close")
        return tuple(frames)

    def say(self, text: bytes) -> None:
        """Put a text message among what is to be sent."""
        self._protocol.send_text(text)

    def ping(self) -> None:
        """Ask for a sign of life."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_ping(b"")

    def leave(self) -> None:
        """Say that we close, if it can still be said."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)

    def to_send(self) -> bytes:
        """Return what is to be sent now: also answers to pings, and to a close."""
        return b"".join(self._protocol.data_to_send())

    def _frame(self, piece: Piece) -> Frame | None:
        if piece.opcode is Opcode.CLOSE:
            close = self._protocol.close_rcvd
            assert close is not None
            self.ended = Ended(close.code, close.reason)
            return Frame("close", json.dumps({"code": close.code, "reason": close.reason}), "")
        if piece.opcode not in _DATA or self.ended is not None:
            return None
        if piece.opcode is not Opcode.CONT:
            self._kind = piece.opcode
        if not piece.fin or self._parts:
            self._parts += piece.data
        if not piece.fin:
            return None
        whole = bytes(self._parts or piece.data)
        kind, self._kind = self._kind, None
        self._parts.clear()
        if kind is Opcode.BINARY:
            return Frame("binary", "", "")
        try:
            return Frame("message", whole.decode(), "")
        except UnicodeDecodeError:
            self._protocol.fail(1007)
            self.ended = Ended(1006, "a text message that is not UTF-8")
            return None


_ANSWERED = frozenset(
    {"upgrade", "connection", "sec-websocket-accept", "sec-websocket-protocol", "sec-websocket-extensions"}
)
