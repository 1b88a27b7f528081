"""HTTP where httpx is mocked: what breaks is what httpx would raise."""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import closing

import httpx
import pytest

from reattach_chaos.plugin.wire import Unmocked, exchange

REQUEST = httpx.Request("GET", "https://anywhere.example/x")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
BODIES = {
    "length": HEAD + b"Content-Length: 10\r\n\r\nhalf",
    "chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n6\r\nan",
}


def serve(answer: bytes, *, resets: bool = False) -> tuple[int, Callable[[], None]]:
    """Answer one request with these bytes and end; return the port, and what ends it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def once() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)
            if resets:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    thread = threading.Thread(target=once)
    thread.start()

    def end() -> None:
        thread.join(30)
        listener.close()

    return listener.getsockname()[1], end


@pytest.mark.parametrize("framing", BODIES)
def test_a_body_that_ends_too_early_is_a_protocol_error(framing: str) -> None:
    """In both framings; http.client itself takes a body that is too short for a whole one."""
    port, end = serve(BODIES[framing])
    answer = exchange(REQUEST, "127.0.0.1", port)
    with closing(answer), pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"):
        answer.read()
    end()


def test_an_asynchronous_client_reads_the_same_body() -> None:
    """Its stream is both."""
    port, end = serve(HEAD + b"Content-Length: 4\r\n\r\nfour")

    async def ask() -> bytes:
        async with httpx.AsyncClient(transport=Unmocked()) as client:
            return (await client.get(f"http://127.0.0.1:{port}/x")).content

    assert asyncio.run(ask()) == b"four"
    end()


def test_no_answer_at_all_is_what_httpx_calls_it() -> None:
    """A server that ends before its head, and one that is not there."""
    port, end = serve(b"")
    with pytest.raises(httpx.RemoteProtocolError, match="Server disconnected without sending a response"):
        exchange(REQUEST, "127.0.0.1", port)
    end()
    with pytest.raises(httpx.ConnectError):
        exchange(REQUEST, "127.0.0.1", port)


def test_a_reset_is_a_read_error() -> None:
    """In the middle of a body, or before it."""
    port, end = serve(BODIES["length"], resets=True)
    with pytest.raises(httpx.ReadError), closing(exchange(REQUEST, "127.0.0.1", port)) as answer:
        answer.read()
    end()
