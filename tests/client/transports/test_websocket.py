"""The WebSocket wire on real sockets, on asyncio and trio: the seam's law, closes, proxies, TLS, and that nothing stays open."""

from __future__ import annotations

import base64
import socket
import ssl
import threading

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpx
import pytest
from websockets.utils import accept_key

from client.transports.conftest import descriptors
from client.transports.origin import Answer, Origin, gone
from client.transports.test_http_closing import serving_tls, trusting
from reattach.testing import socket_frames
from reattach.transports.base import Farewell, Request, WireLost, WireOversize, WireRefused
from reattach.transports.client import ClientWire
from reattach.transports.http import HttpWire
from reattach.transports.websocket import WebSocketWire

pytestmark = pytest.mark.anyio

PATIENCE = 20.0
FIRST = b'{"type":"resume"}'


def key_of(request: bytes) -> str:
    return next(
        line.split(b": ")[1] for line in request.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key")
    ).decode()


def upgrade(request: bytes, *, subprotocol: str = "reattach.v1") -> bytes:
    return (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept_key(key_of(request))}\r\nSec-WebSocket-Protocol: {subprotocol}\r\n\r\n"
    ).encode()


def said(connection: socket.socket) -> tuple[int, bytes]:
    """Return opcode and payload of one frame of the client."""
    head = exactly(connection, 2)
    mask = exactly(connection, 4)
    return head[0] & 0x0F, bytes(byte ^ mask[at % 4] for at, byte in enumerate(exactly(connection, head[1] & 0x7F)))


def exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise OSError("the client is gone")
        data += more
    return data


class Sockets(Origin):
    """An origin whose connections are upgraded before `answer` speaks; `heard` has what clients said, opcode and payload."""

    def __init__(self, answer: Answer, *, tls: ssl.SSLContext | None = None, subprotocol: str = "reattach.v1") -> None:
        self.heard: list[tuple[int, bytes]] = []

        def begin(connection: socket.socket) -> None:
            connection.sendall(upgrade(self.requests[-1], subprotocol=subprotocol))
            if subprotocol == "reattach.v1":
                self.heard.append(said(connection))
            answer(connection)

        super().__init__(begin, tls=tls)


def sending(*parts: bytes, stay: bool = False) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(b"".join(parts))
        if stay:
            gone(connection)

    return answer


def request(origin: Origin, *, timeout: float = PATIENCE, headers: dict[str, str | bytes] | None = None) -> Request:
    asked: dict[str, str | bytes] = {
        "Sec-WebSocket-Protocol": "reattach.v1",
        "Content-Type": "application/json",
        **(headers or {}),
    }
    return Request("GET", origin.url + "/v1/socket", asked, FIRST, timeout)


@pytest.fixture
def wire() -> WebSocketWire:
    return WebSocketWire(HttpWire())


async def everything(stream: object) -> list[str]:
    """Read to the end; return the frames' data."""
    found: list[str] = []
    while (batch := await stream.read()) is not None:  # type: ignore[attr-defined]
        found += [frame.data for frame in batch.frames]
    return found


async def test_an_upgrade_carries_the_headers_and_the_first_message_follows_at_once(wire: WebSocketWire) -> None:
    """No token is in the first message, and no extension is asked for."""
    with Sockets(sending(socket_frames.text("hello"), socket_frames.close(1000))) as origin:
        stream = await wire.stream(
            request(origin, headers={"Authorization": b"Bearer t\xc3\xa4"}), max_event_bytes=1000
        )
        assert (stream.status, stream.objection) == (101, None)
        assert await everything(stream) == ["hello", '{"code": 1000, "reason": ""}']
        await stream.aclose()
    head = origin.requests[0].lower()
    assert head.startswith(b"get /v1/socket http/1.1\r\n")
    assert b"authorization: bearer t\xc3\xa4" in head
    assert head.count(b"sec-websocket-protocol: reattach.v1") == 1
    assert b"extensions" not in head
    assert b"content-type" not in head
    assert origin.heard == [(1, FIRST)]


@pytest.mark.parametrize(
    ("ending", "farewell", "lost"),
    [
        (socket_frames.close(1000), "1000, clean", None),
        (socket_frames.piece(8, b""), "1005, clean", None),
        (socket_frames.close(1001, "bye"), "1001, clean: bye", "closed with 1001 (bye)"),
        (socket_frames.close(1011), "1011, clean", "closed with 1011"),
        (socket_frames.close(4400, "no"), "4400, clean: no", "closed with 4400 (no)"),
        (b"", "1006, unclean: the connection ended without a close", "ended without a close"),
        (b"\x81\x05ab", "1006, unclean: the connection ended without a close", "ended without a close"),
        (b"\x83\x00", "1006, unclean: ", "invalid opcode"),
        (socket_frames.piece(1, b"\xff"), "1006, unclean: a text message that is not UTF-8", "not UTF-8"),
    ],
)
async def test_every_end_is_told_apart_and_what_came_before_it_was_handed_out(
    wire: WebSocketWire, ending: bytes, farewell: str, lost: str | None
) -> None:
    with Sockets(sending(socket_frames.text("a"), ending)) as origin:
        stream = await wire.stream(request(origin), max_event_bytes=1000)
        assert isinstance(stream, Farewell)
        found: list[str] = []
        detail = None
        try:
            while (batch := await stream.read()) is not None:
                found += [frame.data for frame in batch.frames if frame.event == "message"]
        except WireLost as error:
            detail = error.detail
        assert found == ["a"]
        assert detail is None if lost is None else lost in (detail or "")
        assert (stream.farewell or "").startswith(farewell)
        await stream.aclose()
        assert (stream.farewell or "").startswith(farewell), "our own leaving is not how it ended"


async def test_a_reset_is_a_loss_in_the_systems_words(wire: WebSocketWire) -> None:
    def reset(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        connection.close()

    with Sockets(reset) as origin:
        stream = await wire.stream(request(origin), max_event_bytes=1000)
        with pytest.raises(WireLost, match=r"reset by peer|without a close"):
            await everything(stream)
        await stream.aclose()
        assert "1006, unclean" in (stream.farewell or "")  # type: ignore[attr-defined]


async def test_a_message_above_the_limit_is_oversize_and_the_rest_was_handed_out(wire: WebSocketWire) -> None:
    with Sockets(sending(socket_frames.text("a"), socket_frames.text("x" * 5000), stay=True)) as origin:
        stream = await wire.stream(request(origin), max_event_bytes=1000)
        batch = await stream.read()
        assert batch is not None
        assert [frame.data for frame in batch.frames] == ["a"]
        for _ in range(2):
            with pytest.raises(WireOversize) as caught:
                await everything(stream)
            assert caught.value.limit == 1000
        await stream.aclose()


async def test_leaving_says_so_and_is_told_as_ours(wire: WebSocketWire) -> None:
    heard: list[tuple[int, bytes]] = []
    over = threading.Event()

    def listen(connection: socket.socket) -> None:
        heard.append(said(connection))
        over.set()

    with Sockets(listen) as origin:
        stream = await wire.stream(request(origin), max_event_bytes=1000)
        await stream.aclose()
        await stream.aclose()
        assert await anyio.to_thread.run_sync(over.wait, PATIENCE)
        assert stream.farewell == "by us"  # type: ignore[attr-defined]
        with pytest.raises(WireLost):
            await stream.read()
    assert heard == [(8, (1000).to_bytes(2))]


async def test_pings_are_answered_and_are_signs_of_life(wire: WebSocketWire) -> None:
    def ping(connection: socket.socket) -> None:
        connection.sendall(socket_frames.piece(9, b"x"))
        origin.heard.append(said(connection))
        connection.sendall(socket_frames.close(1000))

    with Sockets(ping) as origin:
        stream = await wire.stream(request(origin), max_event_bytes=1000)
        batch = await stream.read()
        assert batch is not None
        assert (batch.frames, batch.growing) == ((), False)
        await everything(stream)
        await stream.aclose()
    assert origin.heard == [(1, FIRST), (10, b"x")]


async def test_in_silence_we_ask_for_life_ourselves_and_lose_nothing() -> None:
    """Each read that is given up for a ping leaves what comes afterwards whole; also inside a frame."""

    def silent(connection: socket.socket) -> None:
        event = socket_frames.text("after a while")
        for piece in (event[:3], event[3:]):
            while (heard := said(connection))[0] != 9:
                assert heard[0] != 8
            connection.sendall(piece)
        connection.sendall(socket_frames.close(1000))
        gone(connection)

    with Sockets(silent) as origin:
        stream = await WebSocketWire(HttpWire(), ping_every=0.01).stream(request(origin), max_event_bytes=1000)
        with anyio.fail_after(PATIENCE):
            assert (await everything(stream))[0] == "after a while"
        await stream.aclose()


async def test_a_slow_reader_slows_the_server_down(wire: WebSocketWire) -> None:
    """What is not read stays in the network: memory is bounded by one read."""
    block = socket_frames.text("x" * 60_000)
    sent = 0
    stuck = threading.Event()

    def flood(connection: socket.socket) -> None:
        nonlocal sent
        connection.settimeout(0.5)
        try:
            while sent < 100_000_000:
                sent += connection.send(block * 10)
        except TimeoutError:
            stuck.set()
            gone(connection)

    with Sockets(flood) as origin:
        stream = await wire.stream(request(origin), max_event_bytes=100_000)
        batch = await stream.read()
        assert batch is not None
        assert sum(len(frame.data) for frame in batch.frames) <= 65_536
        assert await anyio.to_thread.run_sync(stuck.wait, PATIENCE), "it could send without end"
        with anyio.fail_after(PATIENCE):
            await stream.aclose()


# what is no socket ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "objection"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", "text/html instead of a WebSocket"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n", "text/event-stream instead of a WebSocket"),
        (b"HTTP/1.1 404 Not Found\r\n", "no content type instead of a WebSocket"),
        (b"HTTP/1.1 426 Upgrade Required\r\n", "no content type instead of a WebSocket"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n", "no content type instead of a WebSocket"),
    ],
)
async def test_an_answer_that_is_no_upgrade_is_the_answer_and_no_redirect_is_followed(
    wire: WebSocketWire, head: bytes, objection: str
) -> None:
    body = b"<html>Sign in"
    with Origin(sending(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)) as origin:
        stream = await wire.stream(request(origin), max_event_bytes=1000)
        assert stream.objection == objection
        assert stream.status == int(head[9:12])
        assert await stream.body(100) == body
        await stream.aclose()
    assert origin.connections == 1


async def test_an_upgrade_to_something_else_is_objected_to_and_nothing_is_said_on_it(wire: WebSocketWire) -> None:
    with Sockets(lambda connection: gone(connection), subprotocol="chat") as origin:
        stream = await wire.stream(request(origin), max_event_bytes=1000)
        assert stream.status == 101
        assert "chat" in (stream.objection or "")
        assert await stream.body(100) == b""
        await stream.aclose()


async def test_no_answer_in_time_and_nobody_there_are_losses(wire: WebSocketWire) -> None:
    with Origin(None) as origin, pytest.raises(WireLost, match="no answer within"):
        await wire.stream(request(origin, timeout=0.05), max_event_bytes=1000)
    with pytest.raises(WireLost, match="refused") as caught:
        await wire.stream(request(origin), max_event_bytes=1000)
    assert caught.value.definite


async def test_a_header_that_cannot_be_sent_is_refused_before_anything_leaves(wire: WebSocketWire) -> None:
    with Origin(None) as origin, pytest.raises(WireRefused):
        await wire.stream(request(origin, headers={"X": "a\nb"}), max_event_bytes=1000)
    assert origin.connections == 0


async def test_a_client_that_hands_no_connection_over_is_objected_to() -> None:
    """A double of httpx, say."""

    def handler(asked: httpx.Request) -> httpx.Response:
        headers = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Accept": accept_key(asked.headers["sec-websocket-key"]),
            "Sec-WebSocket-Protocol": "reattach.v1",
        }
        return httpx.Response(101, headers=headers)

    async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as client:
        wire = WebSocketWire(ClientWire(client))
        asked = Request("GET", "http://server.test/v1/socket", {"Sec-WebSocket-Protocol": "reattach.v1"}, FIRST)
        stream = await wire.stream(asked, max_event_bytes=1000)
        assert "does not hand its connection over" in (stream.objection or "")
        await stream.aclose()


async def test_calls_go_by_http(wire: WebSocketWire) -> None:
    with Origin(sending(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) as origin:
        answer = await wire.call(Request("GET", origin.url + "/v1/runs/x", {}, None, PATIENCE))
    assert (answer.status, answer.body) == (200, b"{}")


# nothing stays open ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["head", "first message", "reading"])
async def test_cancelled_at_any_moment_nothing_stays_open(wire: WebSocketWire, settles, when: str) -> None:
    def stay(connection: socket.socket) -> None:
        connection.sendall(socket_frames.text("a"))
        gone(connection)

    with Sockets(stay) if when != "head" else Origin(lambda connection: gone(connection)) as origin:
        before = descriptors()
        for turns in range(30):
            with anyio.CancelScope() as scope:

                async def follow() -> None:
                    stream = await wire.stream(request(origin), max_event_bytes=1000)
                    try:
                        while True:
                            await stream.read()
                    finally:
                        with anyio.CancelScope(shield=True):
                            await stream.aclose()

                async def cancel(scope: anyio.CancelScope, turns: int) -> None:
                    if when == "reading":
                        await anyio.sleep(0.002)
                    for _ in range(turns):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(cancel, scope, turns)
                    await follow()
        assert await settles(before) <= before


# proxies and TLS ------------------------------------------------------------------------------------------------------


class Proxy(Origin):
    """A proxy that tunnels: answers CONNECT and passes bytes on to an origin."""

    def __init__(self, to: Origin, *, status: bytes = b"200 Connection established", extra: bytes = b"") -> None:
        def tunnel(connection: socket.socket) -> None:
            connection.sendall(b"HTTP/1.1 " + status + b"\r\nVia: test\r\n\r\n" + extra)
            if not status.startswith(b"2") or extra:
                return
            with socket.create_connection(("127.0.0.1", to.port)) as onward:
                back = threading.Thread(target=self._pass, args=(onward, connection), daemon=True)
                back.start()
                self._pass(connection, onward)
                back.join(PATIENCE)

        super().__init__(tunnel)

    @staticmethod
    def _pass(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


async def test_a_plain_socket_goes_through_a_proxy_by_a_tunnel() -> None:
    """A proxy that forwards would not pass the upgrade on; its password is sent to it alone."""
    with Sockets(sending(socket_frames.text("a"), socket_frames.close(1000))) as origin, Proxy(origin) as proxy:
        wire = WebSocketWire(HttpWire(proxy=f"http://me:s%20c@127.0.0.1:{proxy.port}"))
        stream = await wire.stream(request(origin), max_event_bytes=1000)
        assert (await everything(stream))[0] == "a"
        await stream.aclose()
    head = proxy.requests[0]
    assert head.startswith(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % (origin.port, origin.port))
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"me:s c") in head
    assert b"Proxy-Authorization" not in origin.requests[0]


async def test_the_environments_proxy_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sockets(sending(socket_frames.close(1000))) as origin, Proxy(origin) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        stream = await WebSocketWire(HttpWire()).stream(request(origin), max_event_bytes=1000)
        await everything(stream)
        await stream.aclose()
    assert proxy.connections == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"status": b"407 Proxy Authentication Required"}, "407 Proxy Authentication Required"),
        ({"status": b"502 Bad Gateway"}, "502 Bad Gateway"),
        ({"extra": b"x"}, "spoke before"),
    ],
)
async def test_a_proxy_that_does_not_tunnel_is_a_loss_in_its_words(
    answer: dict[str, bytes], told: str, settles
) -> None:
    with Origin(None) as origin, Proxy(origin, **answer) as proxy:
        before = descriptors()
        with pytest.raises(WireLost, match=told) as caught:
            await WebSocketWire(HttpWire(proxy=f"http://127.0.0.1:{proxy.port}")).stream(
                request(origin), max_event_bytes=1000
            )
        assert caught.value.definite
        assert await settles(before) <= before
    assert origin.connections == 0


async def test_a_proxy_that_says_nothing_or_no_http_is_a_loss() -> None:
    for parts in ((b"",), (b"SSH-2.0\r\n\r\n",), (b"x" * 70_000,)):
        with Origin(sending(*parts)) as proxy, Origin(None) as origin:
            wire = WebSocketWire(HttpWire(proxy=f"http://127.0.0.1:{proxy.port}"))
            with pytest.raises(WireLost, match="CONNECT"):
                await wire.stream(request(origin), max_event_bytes=1000)


async def test_a_socket_over_tls_and_over_tls_through_a_proxy() -> None:
    """wss, with the caller's own trust; a proxy sees nothing but the tunnel."""
    talk = sending(socket_frames.text("a"), socket_frames.close(1000))
    with Sockets(talk, tls=serving_tls()) as origin, Proxy(origin) as proxy:
        for through in (None, f"http://127.0.0.1:{proxy.port}"):
            wire = WebSocketWire(HttpWire(ssl_context=trusting(), proxy=through))
            stream = await wire.stream(request(origin), max_event_bytes=1000)
            assert (await everything(stream))[0] == "a"
            await stream.aclose()
    assert proxy.connections == 1


async def test_a_certificate_that_is_not_trusted_is_a_definite_loss(wire: WebSocketWire) -> None:
    with Sockets(sending(), tls=serving_tls()) as origin, pytest.raises(WireLost, match="certificate") as caught:
        await wire.stream(request(origin), max_event_bytes=1000)
    assert caught.value.definite
