"""The wire over an httpx client that somebody else made: one request an attempt, always closed.

Nothing here names a class of httpx: any client with its `build_request` and `send` will do. Its own headers, cookies, auth,
proxies and hooks are in force; its time limits and redirects are not, since the seam has its own rules for both.
"""

from __future__ import annotations

from typing import Any

import anyio

from reattach.transports.base import Request, Response, Stream, WireLost
from reattach.transports.failures import told
from reattach.transports.outgoing import outgoing
from reattach.transports.stream import HttpStream

LONGEST_BODY = 64 * 1024 * 1024  # bytes


class _Progress:
    """Listens to httpcore's trace of one request: did it begin to send? It is what makes a loss definite or not."""

    def __init__(self) -> None:
        self.connecting = False
        self.sending = False

    async def __call__(self, name: str, info: object) -> None:
        if name.endswith(".connect_tcp.started"):
            self.connecting = True
        elif name.endswith(".send_request_headers.started"):
            self.sending = True

    @property
    def definite(self) -> bool:
        """Whether nothing of the request can have left; a client that tells nothing gives no ground to say so."""
        return self.connecting and not self.sending


class ClientWire:
    """The seam's `Wire` over a caller's client, which stays the caller's: `aclose` leaves it open."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def stream(self, request: Request, *, max_event_bytes: int) -> Stream:
        """Send the request and return when the response's head is here; see the seam."""
        response = await self.answer(request)
        return HttpStream(response, max_event_bytes=max_event_bytes, timeout=request.timeout)

    async def answer(self, request: Request) -> Any:
        """Send the request and return the library's response when its head is here; whoever gets it closes it.

        Raises:
            WireLost, WireRefused: As `stream`.
        """
        progress = _Progress()
        try:
            with anyio.fail_after(request.timeout):
                return await self._send(request, progress)
        except TimeoutError as exc:
            raise WireLost(f"no answer within {request.timeout:g} s", definite=progress.definite) from exc

    async def call(self, request: Request) -> Response:
        """Make one finite request; see the seam.

        A body in a content coding that nobody asked for is WireLost, or left out where the status is not a success.
        """
        progress = _Progress()
        try:
            with anyio.fail_after(request.timeout):
                response = await self._send(request, progress)
                stream = HttpStream(response, max_event_bytes=0, timeout=request.timeout)
                try:
                    return Response(stream.status, stream.headers, await _whole(stream))
                finally:
                    await stream.aclose()
        except TimeoutError as exc:
            raise WireLost(f"no whole answer within {request.timeout:g} s", definite=progress.definite) from exc

    async def aclose(self) -> None:
        """Do nothing: the client is not ours."""

    def headers(self, request: Request) -> dict[bytes, bytes]:
        """Return what is sent with the request beside the client's own headers.

        Raises:
            WireRefused: One cannot be sent.
        """
        headers = outgoing(request.headers)
        if request.body is not None:
            headers.setdefault(b"content-type", b"application/json")
        headers[b"accept-encoding"] = b"identity"
        return headers

    async def _send(self, request: Request, progress: _Progress) -> Any:
        headers = self.headers(request)
        try:
            built = self._client.build_request(
                request.method,
                request.url,
                headers=list(headers.items()),
                content=request.body,
                timeout=None,
                extensions={"trace": progress},
            )
            return await self._client.send(built, stream=True, follow_redirects=False)
        except Exception as exc:
            raise told(exc, sent=progress.sending) from exc


async def _whole(stream: HttpStream) -> bytes:
    if stream.coding is not None:
        if stream.status < 300:
            raise WireLost(f"content coding {stream.coding}, which was not asked for")
        return b""
    body = bytearray()
    while (chunk := await stream.chunk()) is not None:
        body += chunk
        if len(body) > LONGEST_BODY:
            raise WireLost(f"a body above {LONGEST_BODY} bytes")
    return bytes(body)
