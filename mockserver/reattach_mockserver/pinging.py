"""uvicorn's WebSocket protocol with one message more, and with bounds: in fragments, in pongs and in readers that take nothing.

An application may send a ping, which ASGI has no message for; when to is the face's. A message in fragments without end costs
memory though they are empty, and so do pongs to a peer that does not read them (RFC 6455, 5.5.3, lets us answer the last of
several pings). It knows no run and no heartbeat. Checked by tests/mockserver/test_guard.py.
"""

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame
from websockets.server import ServerProtocol

from reattach_mockserver.faces.problem import invalid_request
from reattach_mockserver.faces.socket import PING
from reattach_mockserver.patience import Patience
from reattach_mockserver.stall import Stall

_FRAGMENTS = 10_000


class PingingProtocol(WebSocketsSansIOProtocol):
    """A connection whose application may send `{"type": PING}`; the scope's extensions say so."""

    patience = Patience()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stall = Stall(self.patience.stall)
        self._pong = b""  # what is owed to the last ping of a peer that does not read

    def handle_connect(self, event: Any) -> None:
        """Begin the connection; its task begins after this, so that it sees the extension."""
        response = ServerProtocol().accept(event)
        if response.status_code != 101:
            self.handshake_complete = self.close_sent = True
            why = invalid_request("this upgrade is none that RFC 6455 knows")
            self.transport.write(why.message())
            self.transport.close()
            return
        super().handle_connect(event)
        if self.handshake_initiated and not self.handshake_complete:
            self.scope["extensions"][PING] = {}

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment in; not as many as would cost memory though they are empty."""
        if self.close_sent:
            return
        if len(self.frames) >= _FRAGMENTS:
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, "too many fragments")
            self.handle_parser_exception()
        else:
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Hand a whole message on; text that is none ends the socket, also one whose peer has said goodbye behind it."""
        if self.curr_msg_data_type == "text" and not self.close_sent and not _is_text(b"".join(self.frames)):
            self.frames = []
            self.conn.fail(CloseCode.INVALID_DATA, "a text that is not UTF-8")
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Answer pings as they come, to a peer that reads; else the last of them, once it does."""
        pong = b"".join(self.conn.data_to_send())
        if self.writable.is_set():
            self.transport.write(pong)
        else:
            self._pong = pong

    def pause_writing(self) -> None:
        """Note that the reader is behind."""
        super().pause_writing()
        self._stall.begin(self.transport)

    def resume_writing(self) -> None:
        """Note that it has caught up."""
        self._stall.end()
        pong, self._pong = self._pong, b""
        if pong and not self.close_sent:
            self.transport.write(pong)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._stall.end()
        super().connection_lost(exc)

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


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
