"""The seam between the client and the network: one connection an attempt, read by read.

A `Wire` opens streams and makes finite calls; it knows HTTP, never a vendor, an event's meaning or a retry. Whatever goes wrong
is one of the errors below, mapped from the library's in one place per transport, `from exc`. Implementations: `http.HttpWire`
(httpx), `websocket.WebSocketWire`, `reattach.testing.Wire` (scripted). All bounds that the caller gives are kept by them.

To add a transport: one file here, one class with these three methods. What must hold of it is what tests/client/transports shows of
`HttpWire`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from reattach.wire.frame import Frame


class Request(NamedTuple):
    """One HTTP request; `body` is JSON text in UTF-8. Header values are bytes where they may be other than ASCII."""

    method: str
    url: str
    headers: Mapping[str, str | bytes]
    body: bytes | None = None
    timeout: float = 10.0
    """Seconds: for a stream until the response's head is here, for a call until its whole body is here."""


class Response(NamedTuple):
    """The whole answer to a finite call; header names are lower case, repeated ones joined by a comma."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Batch(NamedTuple):
    """What one read brought. Empty `frames` still says that the other side is alive.

    `retry` is the last `retry:` wish in seconds; `growing` says that the read ended inside an event.
    """

    frames: tuple[Frame, ...]
    retry: float | None = None
    growing: bool = False


class WireLost(Exception):
    """The connection could not be made, or ended without a clean end. `definite`: nothing of the request left this machine."""

    def __init__(self, detail: str, *, definite: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.definite = definite


class WireOversize(Exception):
    """One event is larger than the limit; nothing of it was handed out."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"an event larger than {limit} bytes")
        self.limit = limit


class WireRefused(Exception):
    """The request is impossible as it stands (a header that cannot be sent); nothing left this machine."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class AsyncHTTPClient(Protocol):
    """A caller's own HTTP client: an `httpx.AsyncClient`, or one of httpx's continuations. No class of a library is named."""

    @property
    def build_request(self) -> Callable[..., Any]:
        """Make a request from method, url, headers, content, timeout and extensions."""
        ...

    @property
    def send(self) -> Callable[..., Any]:
        """Send it, awaited, with `stream` and `follow_redirects`."""
        ...


class Stream(Protocol):
    """An answered stream request. Must be closed by `aclose`, in any state, also when cancelled, twice."""

    @property
    def status(self) -> int:
        """The HTTP status; 101 is an open socket."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Header names in lower case."""
        ...

    @property
    def objection(self) -> str | None:
        """Why a 200 is not an event stream, or a 101 not a socket, that we can read, else None."""
        ...

    async def read(self) -> Batch | None:
        """Return what the next read brought, or None at a clean end of the body.

        Raises:
            WireLost: The connection ended in the middle, or could not be decoded.
            WireOversize: An event is above the limit.
        """
        ...

    async def body(self, limit: int) -> bytes:
        """Return at most `limit` bytes of the body of an answer that is not a stream.

        Raises:
            WireLost: The connection ended first.
        """
        ...

    async def aclose(self) -> None:
        """Close the connection at once. Never raises, never waits for the other side."""
        ...


@runtime_checkable
class Farewell(Protocol):
    """A stream that can say how it ended, as a WebSocket can."""

    farewell: str | None
    """The close code, whether it was clean and why; None while it is open."""


class Wire(Protocol):
    """Opens connections. Used from one event loop; many at once."""

    async def stream(self, request: Request, *, max_event_bytes: int) -> Stream:
        """Send the request on a fresh connection and return when the response's head is here.

        Raises:
            WireLost: No connection, no answer within `request.timeout`, or not HTTP.
            WireRefused: The request cannot be sent as it is.
        """
        ...

    async def call(self, request: Request) -> Response:
        """Make one finite request. Redirects are not followed; a body above 64 MiB is WireLost.

        Raises:
            WireLost: No whole answer within `request.timeout` seconds; `definite` if nothing was sent.
            WireRefused: The request cannot be sent as it is.
        """
        ...

    async def aclose(self) -> None:
        """Close what is pooled. Never raises."""
        ...
