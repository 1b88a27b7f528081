"""`exchange`: one HTTP exchange by `http.client`, told as httpx tells it. For where httpx itself may be mocked (respx).

What the wire does becomes what httpx would raise: a connection that is reset in a body is a ReadError, one that ends in it a
RemoteProtocolError.
"""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import AsyncIterator, Iterator

import httpx

_LIMIT_S = 60.0
_READ = 65_536
_HOP = frozenset({"connection", "transfer-encoding", "keep-alive", "host", "content-length"})


def exchange(request: httpx.Request, host: str, port: int) -> httpx.Response:
    """Send a request to this address, whatever its own says; return the answer, its body still to be read.

    Raises:
        httpx.TransportError: As the wire had it.
    """
    connection = http.client.HTTPConnection(host, port, timeout=_LIMIT_S)
    target = request.url.raw_path.decode("ascii")
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
    try:
        connection.request(request.method, target, request.content or None, headers)
        answer = connection.getresponse()
    except (http.client.HTTPException, OSError) as error:
        connection.close()
        raise _as_httpx(error) from error
    kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in _HOP]
    return httpx.Response(answer.status, headers=kept, stream=_Body(connection, answer), request=request)


class Unmocked(httpx.AsyncBaseTransport):
    """A transport of httpx that no mock of httpx meets: our own hand must reach the server in a test that mocks everything."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Exchange, in a thread."""
        await request.aread()
        url = request.url
        return await asyncio.to_thread(exchange, request, url.host, url.port or 80)


class _Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body as it comes, for both kinds of client."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        while part := self._part():
            yield part

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while part := await asyncio.to_thread(self._part):
            yield part

    def close(self) -> None:
        """Close the connection."""
        self._answer.close()
        self._connection.close()

    async def aclose(self) -> None:
        """Close the connection."""
        self.close()

    def _part(self) -> bytes:
        try:
            part = self._answer.read1(_READ)
            if not part and self._answer.length:  # http.client calls it an end, httpx does not
                raise http.client.IncompleteRead(b"", self._answer.length)
            return part
        except (http.client.HTTPException, OSError) as error:
            raise _as_httpx(error) from error


def _as_httpx(error: Exception) -> httpx.TransportError:
    match error:
        case http.client.IncompleteRead():
            return httpx.RemoteProtocolError(
                "peer closed connection without sending complete message body (incomplete chunked read)"
            )
        case http.client.RemoteDisconnected():
            return httpx.RemoteProtocolError("Server disconnected without sending a response.")
        case http.client.HTTPException():
            return httpx.RemoteProtocolError(str(error))
        case ConnectionRefusedError():
            return httpx.ConnectError(str(error))
        case TimeoutError():
            return httpx.ReadTimeout(str(error))
        case _:
            return httpx.ReadError(str(error))
