"""A scripted WebSocket: the real client's socket over a `Body` in place of a network.

Messages, fragments, closes and pings are read by the transport's own code; only the bytes are the test's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from websockets.utils import accept_key

from reattach.testing.body import Body
from reattach.transports.base import Request, WireLost
from reattach.transports.conversation import Conversation
from reattach.transports.websocket import WebSocket


class _Network:
    """What an HTTP client hands over with a 101."""

    def __init__(self, body: Body) -> None:
        self._body = body

    async def read(self, size: int) -> bytes:
        """Return what the next read brings; b"" at the end."""
        try:
            return await self._body.read() or b""
        except WireLost as lost:
            raise ConnectionResetError(lost.detail) from lost

    async def write(self, data: bytes) -> None:
        """Keep what the client says."""
        self._body.heard += data


class _Answer:
    """A 101, as an HTTP client gives it."""

    def __init__(self, headers: Mapping[str, str], body: Body, closed: Callable[[], None]) -> None:
        self.headers = headers
        self.extensions: dict[str, Any] = {"network_stream": _Network(body)}
        self._body = body
        self._closed: Callable[[], None] | None = closed

    async def aclose(self) -> None:
        """Hang up."""
        told, self._closed = self._closed, None
        if told is not None:
            self._body.hang_up()
            told()


def opened(request: Request, body: Body, max_event_bytes: int, closed: Callable[[], None]) -> WebSocket:
    """Return the open socket of a request.

    Args:
        request: What was asked; its headers name the subprotocol.
        body: What comes.
        max_event_bytes: The limit.
        closed: Called once, when it is closed.
    """
    subprotocol = str(request.headers["Sec-WebSocket-Protocol"])
    conversation = Conversation(subprotocol, max_event_bytes=max_event_bytes)
    asked = conversation.upgrade()
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": accept_key(asked["Sec-WebSocket-Key"]),
        "Sec-WebSocket-Protocol": subprotocol,
    }
    return WebSocket(_Answer(headers, body, closed), conversation, ping_every=float("inf"))
