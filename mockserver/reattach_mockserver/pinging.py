"""uvicorn's WebSocket protocol with one message more: an application may send a ping, which ASGI has no message for.

Used by `host.py`. It knows no run and no heartbeat: when to ping is the face's. Everything else is uvicorn's.
"""

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

from reattach_mockserver.faces.socket import PING


class PingingProtocol(WebSocketsSansIOProtocol):
    """A connection whose application may send `{"type": PING}`; the scope's extensions say so."""

    def handle_connect(self, event: Any) -> None:
        """Begin the connection; its task begins after this, so that it sees the extension."""
        super().handle_connect(event)
        if self.handshake_initiated and not self.handshake_complete:
            self.scope["extensions"][PING] = {}

    async def send(self, message: Any) -> None:
        """Send a ping, under the same pressure of a full buffer as every message; or what uvicorn knows."""
        if message["type"] != PING:
            await super().send(message)
            return
        await self.writable.wait()
        if self.close_sent or self.transport.is_closing():
            raise ConnectionResetError("the client has left")
        try:
            self.conn.send_ping(b"")
        except InvalidState as error:
            raise ConnectionResetError("the client has left") from error
        self.transport.write(b"".join(self.conn.data_to_send()))
