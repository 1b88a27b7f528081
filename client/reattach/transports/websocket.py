"""The wire over WebSocket: streams are sockets, finite calls go by HTTP to the same address, over the wire that is given.

A socket begins as one HTTP request with an upgrade, so connection, TLS, proxy, headers, limits of time and the mapping of errors
are the HTTP wire's, and a caller's own client will do. `Request.headers` names the subprotocol, `Request.body` is the first
message, sent as soon as the socket is open. One connection an attempt, never pooled; nothing here falls back to another way.

Liveness: pings are answered, and count as bytes; when nothing came for a while we ping ourselves. Whether that is silence for too
long is the core's to say. What comes is read only as it is asked for, 64 KiB at a time, so a slow caller slows the server.

Checked by tests/client/transports/test_websocket.py.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio

from reattach.transports.base import Batch, Request, Response, Stream, WireLost, WireOversize
from reattach.transports.client import ClientWire
from reattach.transports.conversation import CLEAN, Conversation, Ended
from reattach.transports.failures import told
from reattach.transports.stream import CLOSE_TIMEOUT, HANG_UP, HttpStream

_READ = 65_536  # bytes
_LAST_WORDS = 0.2  # seconds for our close frame to reach the socket's buffer, which takes none unless it is full


class WebSocketWire:
    """The seam's `Wire` whose streams are WebSockets.

    Args:
        http: Makes the calls, and the requests that become sockets.
        ping_every: Seconds of silence after which we ask for a sign of life.
    """

    def __init__(self, http: ClientWire, *, ping_every: float = 15.0) -> None:
        self._http = http
        self._ping_every = ping_every

    async def stream(self, request: Request, *, max_event_bytes: int) -> Stream:
        """Open a socket and send its first message; see the seam. What is no upgrade is returned as the answer that it is."""
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _REPLACED}
        asked = next(value for name, value in request.headers.items() if name.lower() == "sec-websocket-protocol")
        conversation = Conversation(
            asked if isinstance(asked, str) else asked.decode(), max_event_bytes=max_event_bytes
        )
        upgrade = Request("GET", request.url, {**headers, **conversation.upgrade()}, None, request.timeout)
        response = await self._http.answer(upgrade)
        if response.status_code != 101:
            return NoSocket(response, max_event_bytes=max_event_bytes, timeout=request.timeout)
        socket = WebSocket(response, conversation, ping_every=self._ping_every)
        try:
            if socket.objection is None and request.body is not None:
                with anyio.fail_after(request.timeout):
                    await socket.say(request.body)
        except TimeoutError as exc:
            await socket.aclose()
            raise WireLost(f"the first message could not be sent within {request.timeout:g} s") from exc
        except BaseException:
            await socket.aclose()
            raise
        return socket

    async def call(self, request: Request) -> Response:
        """Make one finite request by HTTP; see the seam."""
        return await self._http.call(request)

    async def aclose(self) -> None:
        """Close what the HTTP wire holds."""
        await self._http.aclose()


_REPLACED = frozenset({"content-type", "sec-websocket-protocol", "upgrade", "connection"})


class NoSocket(HttpStream):
    """An answer that is no upgrade: a refusal, or somebody else's page."""

    @property
    def objection(self) -> str:
        """Say what came instead."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip()
        return f"{kind or 'no content type'} instead of a WebSocket"


class WebSocket:
    """An open socket, as the seam's `Stream` and `Farewell`.

    Args:
        response: The 101, of any httpx client; its connection is in its extensions.
        conversation: Its messages.
        ping_every: Seconds.
    """

    status = 101

    def __init__(self, response: Any, conversation: Conversation, *, ping_every: float) -> None:
        self._response = response
        self._conversation = conversation
        self._ping_every = ping_every
        self._network: Any = response.extensions.get("network_stream")
        self._fault: WireLost | WireOversize | None = None
        self._over = False
        self._unusable = False  # a read is under way, was interrupted or failed: there is nothing to go on from
        self._writing = False  # a write was begun and did not end: whatever we add would be torn
        self._closed = False
        self.headers = dict(response.headers.items())
        self.objection = conversation.upgraded(self.headers)
        if self.objection is None and self._network is None:
            self.objection = "an upgrade by an HTTP client that does not hand its connection over"
        self.farewell: str | None = None

    async def say(self, text: bytes) -> None:
        """Send a text message.

        Raises:
            WireLost: The connection ended first.
        """
        self._conversation.say(text)
        await self._flush()

    async def read(self) -> Batch | None:
        """Return what the next read brought, None after a close with 1000 or without a code; see the seam."""
        if self._fault is not None:
            raise self._fault
        if self._over:
            return None
        if self._unusable:
            raise WireLost("the connection is closed")
        self._unusable = True
        frames = self._conversation.feed(await self._receive())
        ended = self._conversation.ended
        if ended is None:
            await self._flush()  # answers to pings
        else:
            self._end(ended)
            with suppress(WireLost):  # the answer to the close is a courtesy
                await self._flush()
        self._unusable = False
        return Batch(frames, None, self._conversation.growing)

    def _end(self, ended: Ended) -> None:
        self.farewell = str(ended)
        if self._conversation.oversize:
            self._fault = WireOversize(self._conversation.limit)
        elif ended.code in CLEAN:
            self._over = True
        else:
            said = f" ({ended.detail})" if ended.detail else ""
            self._fault = WireLost(f"the WebSocket closed with {ended.code}{said}" if ended.clean else ended.detail)

    async def body(self, limit: int) -> bytes:
        """Return nothing: what follows a 101 is no body."""
        return b""

    async def aclose(self) -> None:
        """Say that we close, if that takes no time, and close the connection; see the seam."""
        if self._closed:
            return
        self._closed = self._unusable = True
        if self.farewell is None:
            self.farewell = "by us"
        self._conversation.leave()
        words = self._conversation.to_send()
        if words and self._network is not None and not self._writing:
            with anyio.move_on_after(_LAST_WORDS, shield=True), suppress(Exception):
                await self._network.write(words)
        hang_up = self._response.extensions.get(HANG_UP)
        with anyio.move_on_after(CLOSE_TIMEOUT, shield=True):
            if hang_up is not None:
                await hang_up()
            with suppress(Exception):
                await self._response.aclose()

    async def _receive(self) -> bytes:
        while True:
            with anyio.move_on_after(self._ping_every):
                try:
                    data: bytes = await self._network.read(_READ)
                except Exception as exc:
                    raise self._broken(exc) from exc
                return data
            self._conversation.ping()
            await self._flush()

    async def _flush(self) -> None:
        data = self._conversation.to_send()
        if not data:
            return
        self._writing = True
        try:
            await self._network.write(data)
        except Exception as exc:
            raise self._broken(exc) from exc
        self._writing = False

    def _broken(self, exc: Exception) -> WireLost:
        lost = told(exc, sent=True)
        assert isinstance(lost, WireLost)  # something was sent: it is no refusal
        if self.farewell is None:
            self.farewell = str(Ended(1006, lost.detail))
        return lost
