"""Streams over real sockets: what is sent, what is read, and each way in which a stream can end."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Mapping

import anyio
import pytest

from client.transports.origin import (
    CHUNKED,
    HEAD,
    LAST_CHUNK,
    UNTIL_CLOSE,
    Origin,
    chunk,
    event,
    gone,
    sending,
    until_gone,
)
from reattach.transports import http
from reattach.transports.base import Request, Stream, Wire, WireLost, WireOversize, WireRefused
from reattach.wire.frame import Frame

pytestmark = pytest.mark.anyio

LIMIT = 1 << 20


def get(url: str, headers: Mapping[str, str | bytes] | None = None, timeout: float = 10.0) -> Request:
    return Request("GET", url, headers or {}, None, timeout)


async def frames_of(stream: Stream) -> list[Frame]:
    frames: list[Frame] = []
    with anyio.fail_after(10):
        while (batch := await stream.read()) is not None:
            frames += batch.frames
    return frames


async def read_all(wire: Wire, *parts: bytes) -> list[Frame]:
    """All frames of an origin's answer, to its clean end."""
    with Origin(sending(*parts)) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        try:
            return await frames_of(stream)
        finally:
            await stream.aclose()


ONE, TWO = Frame("message", "x", "1"), Frame("message", "x", "2")


# ----------------------------------------------------------------------------------------------------------- the request


async def test_a_request_is_exactly_what_it_says(wire: Wire) -> None:
    """Nothing is sent that was not asked for but the host, our name and the wish for no coding."""
    with Origin(sending(UNTIL_CLOSE)) as origin:
        stream = await wire.stream(
            get(origin.url + "/a?b=c%20d", {"Last-Event-ID": "é€".encode()}), max_event_bytes=LIMIT
        )
        await stream.aclose()
    assert origin.requests == [
        b"GET /a?b=c%%20d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nlast-event-id: \xc3\xa9\xe2\x82\xac\r\n"
        b"accept-encoding: identity\r\nuser-agent: %b\r\n\r\n" % (origin.port, http.user_agent())
    ]
    assert http.user_agent().startswith(b"reattach/")


async def test_the_callers_name_and_type_are_kept(wire: Wire) -> None:
    """Headers of the caller win over ours, but for the coding, whatever their case."""
    headers = {"USER-AGENT": "me", "Content-Type": "application/x", "Accept-Encoding": "gzip", "X": "ü"}
    with Origin(sending(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as origin:
        await wire.call(Request("POST", origin.url, headers, b"{}"))
    head = origin.requests[0].lower()
    for line in (b"user-agent: me", b"content-type: application/x", b"accept-encoding: identity", b"x: \xc3\xbc"):
        assert head.count(line.split(b":")[0] + b":") == 1
        assert line + b"\r\n" in head


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X", "a\r\nY: b"),
        ("X", "a\0"),
        ("X", "a\tb"),
        ("X", "\x7f"),
        ("X", "7 "),
        ("X", b" 7"),
        ("X", "x" * 8193),
        ("X", "€" * 3000),
        ("X", "\ud800"),
        ("X Y", "a"),
        ("Xé", "a"),
        ("", "a"),
    ],
)
async def test_a_header_that_cannot_be_sent_is_refused_before_anything_leaves(
    wire: Wire, name: str, value: str | bytes
) -> None:
    """A poison id is an error at once, not one at every reconnect; no connection is made for it."""
    with Origin(sending(UNTIL_CLOSE)) as origin:
        for request in (get(origin.url, {name: value}), Request("POST", origin.url, {name: value}, b"{}")):
            with pytest.raises(WireRefused):
                await wire.stream(request, max_event_bytes=LIMIT)
            with pytest.raises(WireRefused):
                await wire.call(request)
    assert origin.connections == 0


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1/", "http://", "/path", "http://[::1", "http://127.0.0.1:99999/", "http://a\0b/"]
)
async def test_a_url_that_cannot_be_asked_is_refused(wire: Wire, url: str) -> None:
    """No retry can mend an address."""
    with pytest.raises(WireRefused):
        await wire.stream(get(url), max_event_bytes=LIMIT)


async def test_a_name_and_password_in_the_url_are_sent(wire: Wire) -> None:
    """As any HTTP client does with them."""
    with Origin(sending(UNTIL_CLOSE)) as origin:
        stream = await wire.stream(get(f"http://me:secret@127.0.0.1:{origin.port}/"), max_event_bytes=LIMIT)
        await stream.aclose()
    assert b"\r\nAuthorization: Basic bWU6c2VjcmV0\r\n" in origin.requests[0]


async def test_cookies_are_not_sent_back(wire: Wire) -> None:
    """No answer adds anything to a later request."""
    with Origin(sending(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 0\r\n\r\n")) as origin:
        for _ in range(2):
            await wire.call(get(origin.url))
    assert b"cookie" not in origin.requests[1].lower()
    assert origin.connections == 2


# ------------------------------------------------------------------------------------------------------------ the answer


async def test_an_event_is_here_before_the_next_is_sent(wire: Wire) -> None:
    """An event is delivered when it comes, not when its read could be filled."""
    seen = threading.Semaphore(0)

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        for number in range(5):
            connection.sendall(chunk(event(number)))
            assert seen.acquire(timeout=10)
        connection.sendall(LAST_CHUNK)

    with Origin(answer) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        with anyio.fail_after(10):
            for number in range(5):
                batch = await stream.read()
                assert batch is not None
                assert batch.frames == (Frame("message", "x", str(number)),)
                seen.release()
            assert await stream.read() is None
        await stream.aclose()


async def test_a_comment_is_a_sign_of_life(wire: Wire) -> None:
    """A heartbeat makes a batch without frames; half an event one that grows; a retry wish comes along in seconds."""
    async with _Dialogue(wire) as talk:
        talk.says(b": ping\n\n")
        assert await talk.hears() == ((), None, False)
        talk.says(b"retry: 1500\ndata: a")
        assert await talk.hears() == ((), 1.5, True)
        talk.says(b"\n\n: p")
        assert await talk.hears() == ((Frame("message", "a", ""),), None, False)


class _Dialogue:
    """A stream whose bytes the test says one by one, each after the one before was read."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._parts: list[bytes] = []
        self._more = threading.Semaphore(0)
        self._origin = Origin(self._answer)

    def _answer(self, connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        while self._more.acquire(timeout=10) and self._parts:
            connection.sendall(chunk(self._parts.pop(0)))

    async def __aenter__(self) -> _Dialogue:
        self._origin.__enter__()
        self._stream = await self._wire.stream(get(self._origin.url), max_event_bytes=LIMIT)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stream.aclose()
        self._more.release()
        self._origin.__exit__(None, None, None)

    def says(self, part: bytes) -> None:
        self._parts.append(part)
        self._more.release()

    async def hears(self) -> object:
        with anyio.fail_after(10):
            return await self._stream.read()


@pytest.mark.parametrize(
    "parts",
    [
        (UNTIL_CLOSE, event(1), event(2)),
        (HEAD + b"Content-Length: %d\r\n\r\n" % (2 * len(event(1))), event(1), event(2)),
        (CHUNKED, chunk(event(1)), chunk(event(2)), LAST_CHUNK),
        (CHUNKED + chunk(event(1)) + chunk(event(2)) + b"0;x=y\r\nTrailer: 1\r\n\r\n",),
        (CHUNKED, *(chunk(bytes([byte])) for byte in event(1) + event(2)), LAST_CHUNK),
        (CHUNKED, b"00%x;a=b;c\r\n" % (2 * len(event(1))), event(1), event(2), b"\r\n", LAST_CHUNK),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
            CHUNKED,
            chunk(event(1) + event(2)),
            LAST_CHUNK,
        ),
        (CHUNKED.replace(b"chunked", b"Chunked"), chunk(event(1) + event(2)), LAST_CHUNK),
        (UNTIL_CLOSE.replace(b"1.1", b"1.0"), event(1), event(2)),
        (CHUNKED, *(bytes([byte]) for byte in chunk(event(1)) + chunk(event(2)) + LAST_CHUNK)),
    ],
)
async def test_a_whole_body_ends_cleanly(wire: Wire, parts: tuple[bytes, ...]) -> None:
    """Every framing of HTTP/1.1 that comes to its end is a clean end, also the close of a body without length."""
    assert await read_all(wire, *parts) == [ONE, TWO]


@pytest.mark.parametrize(
    "parts",
    [
        (CHUNKED, chunk(event(1)), chunk(event(2))),
        (CHUNKED, chunk(event(1)), b"ff\r\n", event(2)),
        (CHUNKED, chunk(event(1)), b"f"),
        (CHUNKED, chunk(event(1)), b"0\r\n"),
        (CHUNKED, chunk(event(1)), b"0\r\nTrailer: "),
        (CHUNKED, chunk(event(1)), b"xyz\r\n", chunk(event(2)), LAST_CHUNK),
        (CHUNKED, chunk(event(1)), b"-1\r\n", chunk(event(2)), LAST_CHUNK),
        (CHUNKED, chunk(event(1)), b"\r\n", chunk(event(2)), LAST_CHUNK),
        (CHUNKED, chunk(event(1))[:-2], chunk(event(2)), LAST_CHUNK),
        (CHUNKED, chunk(event(1)) + b"5\r\nhello!\r\n", chunk(event(2)), LAST_CHUNK),
        (HEAD + b"Content-Length: 1000\r\n\r\n", event(1)),
    ],
)
async def test_a_cut_or_malformed_body_is_lost(wire: Wire, parts: tuple[bytes, ...]) -> None:
    """What HTTP knows to be incomplete or wrong is never a clean end; what came before it is read."""
    with Origin(sending(*parts)) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        frames: list[Frame] = []

        async def read_on() -> None:
            while (batch := await stream.read()) is not None:
                frames.extend(batch.frames)

        with anyio.fail_after(10):
            with pytest.raises(WireLost) as caught:
                await read_on()
            with pytest.raises(WireLost):
                await stream.read()
        await stream.aclose()
    assert frames[:1] == [ONE]
    assert not caught.value.definite


async def test_a_reset_is_lost(wire: Wire) -> None:
    """A reset in the middle of a body without length is told from its end."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(UNTIL_CLOSE + event(1))
        assert seen.wait(10)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    seen = threading.Event()
    with Origin(answer) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        batch = await stream.read()
        assert batch is not None
        assert batch.frames == (ONE,)
        seen.set()
        with anyio.fail_after(10), pytest.raises(WireLost):
            await stream.read()
        await stream.aclose()


async def test_an_event_above_the_limit_is_oversize(wire: Wire) -> None:
    """The frames before it come first, then the error, at once and again; nothing of the event is handed out."""
    with Origin(until_gone(CHUNKED + chunk(event(1)) + chunk(b"data: " + b"x" * 200))) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=100)
        frames: list[Frame] = []
        caught = None
        with anyio.fail_after(10):
            while caught is None:
                try:
                    batch = await stream.read()
                    assert batch is not None
                    frames += batch.frames
                except WireOversize as exc:
                    caught = exc
            with pytest.raises(WireOversize):
                await stream.read()
        await stream.aclose()
    assert frames == [ONE]
    assert caught.limit == 100


@pytest.mark.parametrize(
    ("headers", "objection"),
    [
        (b"Content-Type: text/event-stream", None),
        (b"content-type: Text/Event-Stream", None),
        (b"Content-Type: text/event-stream; charset=iso-8859-1", None),
        (b"Content-Type: text/event-stream;charset=utf-16\r\nContent-Encoding: identity", None),
        (b"Content-Type: text/event-stream ;x", None),
        (b"Content-Type: application/x-text/event-stream-not", "application/x-text/event-stream-not"),
        (b"Content-Type: text/event-stream-not", "text/event-stream-not"),
        (b"Content-Type: text/html; charset=utf-8", "text/html"),
        (b"X: y", "no content type"),
        (b"Content-Type: text/event-stream\r\nContent-Encoding: gzip", "gzip"),
        (b"Content-Type: text/event-stream\r\nContent-Encoding: br", "br"),
    ],
)
async def test_the_type_is_exact_and_no_coding_is_taken(wire: Wire, headers: bytes, objection: str | None) -> None:
    """Only text/event-stream is an event stream, whatever its case and parameters; its text is UTF-8, whatever they say."""
    with Origin(sending(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n\r\n" + event(1, "é".encode()))) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        if objection is None:
            assert stream.objection is None
            assert await frames_of(stream) == [Frame("message", "é", "1")]
        else:
            assert stream.objection is not None
            assert objection in stream.objection
        await stream.aclose()


async def test_a_coded_body_is_never_read(wire: Wire) -> None:
    """Neither as frames (a cut deflate stream would look like a clean end) nor as a text for an error."""
    answer = sending(HEAD + b"Content-Encoding: gzip\r\n\r\n\x1f\x8b")
    with Origin(answer) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        with pytest.raises(WireLost, match="gzip"):
            await stream.read()
        assert await stream.body(100) == b""
        await stream.aclose()


async def test_an_answer_that_is_no_stream_can_be_read_as_a_body(wire: Wire) -> None:
    """Status and headers are the server's, the body comes up to the limit and not further."""
    with Origin(sending(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nX-A: 1\r\nX-A: 2\r\n\r\n", b"sorry" * 1000)) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        assert (stream.status, stream.headers["retry-after"], stream.headers["x-a"]) == (503, "7", "1, 2")
        assert await stream.body(7) == b"sorryso"
        await stream.aclose()


async def test_a_short_body_is_returned_whole(wire: Wire) -> None:
    """The limit is no demand."""
    with Origin(sending(b"HTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\nsorry")) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        assert await stream.body(4096) == b"sorry"
        await stream.aclose()


async def test_a_body_that_does_not_end_is_lost(wire: Wire) -> None:
    """Reading an error's text is bounded by the request's time too."""
    with Origin(until_gone(b"HTTP/1.1 500 No\r\nContent-Length: 5\r\n\r\nso")) as origin:
        stream = await wire.stream(get(origin.url, timeout=0.2), max_event_bytes=LIMIT)
        with anyio.fail_after(10), pytest.raises(WireLost):
            await stream.body(4096)
        await stream.aclose()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(wire: Wire, status: int) -> None:
    """A redirect is an answer like another."""
    with Origin(sending(b"HTTP/1.1 %d X\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n" % status)) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        assert stream.status == status
        assert stream.objection is not None
        await stream.aclose()
        assert (await wire.call(get(origin.url))).status == status
    assert origin.connections == 2


# --------------------------------------------------------------------------------------------------------- no connection


async def test_refused_and_unknown_are_definite(wire: Wire) -> None:
    """Where no connection was made, nothing left: the caller may act on that."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}/", "http://no-such-host.invalid/"):
        with pytest.raises(WireLost) as caught:
            await wire.stream(get(url), max_event_bytes=LIMIT)
        assert caught.value.definite
        with pytest.raises(WireLost) as caught:
            await wire.call(get(url))
        assert caught.value.definite
        assert caught.value.__cause__ is not None


async def test_a_name_that_nobody_knows_is_told_without_the_librarys_words(wire: Wire) -> None:
    with pytest.raises(WireLost) as caught:
        await wire.call(get("http://no-such-host.invalid/"))
    assert caught.value.detail[0].islower()
    assert "Error" not in caught.value.detail
    assert "Errno" not in caught.value.detail


async def test_a_connection_that_is_hung_up_is_told_in_plain_words(wire: Wire) -> None:
    """What a person sees most, after a deploy or a killed server."""
    with Origin(sending()) as origin, pytest.raises(WireLost) as caught:
        await wire.call(get(origin.url))
    assert caught.value.detail == "connection closed before the answer's end"


@pytest.mark.parametrize(
    "answer", [sending(), sending(b"HTTP/1.1 2"), sending(b"SSH-2.0-x\r\n"), sending(b"HTTP/1.1 200 OK\r\nX\r\n\r\n")]
)
async def test_a_connection_without_an_answer_is_lost(wire: Wire, answer: object) -> None:
    """The request may have been acted on, so it is not definite; what is not HTTP is no answer."""
    with Origin(answer) as origin, pytest.raises(WireLost) as caught:  # type: ignore[arg-type]  # parametrized
        await wire.stream(get(origin.url), max_event_bytes=LIMIT)
    assert not caught.value.definite


async def test_the_head_has_the_requests_time(wire: Wire) -> None:
    """A server that takes the request and says nothing is lost after `timeout`, and may have acted."""
    with Origin(until_gone(b"HTTP/1.1 200 OK\r\nX: ")) as origin:
        for make in (wire.call, lambda request: wire.stream(request, max_event_bytes=LIMIT)):
            with anyio.fail_after(10), pytest.raises(WireLost) as caught:
                await make(get(origin.url, timeout=0.1))
            assert not caught.value.definite
            assert "0.1 s" in caught.value.detail


async def test_the_time_ends_with_the_head(wire: Wire) -> None:
    """Once the head is here a stream may be quiet for ever: its reader decides."""
    with Origin(until_gone(UNTIL_CLOSE)) as origin:
        stream = await wire.stream(get(origin.url, timeout=0.1), max_event_bytes=LIMIT)
        with anyio.move_on_after(0.3) as quiet:
            await stream.read()
        assert quiet.cancelled_caught
        await stream.aclose()


# ---------------------------------------------------------------------------------------------------------------- calls


async def test_a_call_returns_the_whole_answer(wire: Wire) -> None:
    """Status, headers and body; the request's body arrives with its length and type."""
    with Origin(sending(CHUNKED, chunk(b'{"a":'), chunk(b"1}"), LAST_CHUNK)) as origin:
        answer = await wire.call(Request("POST", origin.url + "/runs", {"Idempotency-Key": "k"}, b'{"x": 1}'))
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b'{"a":1}', "text/event-stream")
    head, _, body = origin.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /runs HTTP/1.1\r\n")
    assert b"\r\ncontent-type: application/json" in head
    assert b"\r\nContent-Length: 8" in head
    assert body == b'{"x": 1}'


async def test_a_call_has_its_time_for_everything(wire: Wire) -> None:
    """A body that drips on for longer than `timeout` is lost, though bytes keep coming."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        for _ in range(1000):
            connection.sendall(chunk(b"x"))
            if stop.wait(0.02):
                return

    stop = threading.Event()
    with Origin(answer) as origin:
        with anyio.fail_after(10), pytest.raises(WireLost) as caught:
            await wire.call(get(origin.url, timeout=0.3))
        stop.set()
    assert not caught.value.definite


async def test_a_call_cut_in_its_body_is_lost(wire: Wire) -> None:
    """Half an answer is none."""
    with Origin(sending(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")) as origin, pytest.raises(WireLost):
        await wire.call(get(origin.url))


async def test_a_call_has_a_largest_body(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer without end is cut off."""
    monkeypatch.setattr("reattach.transports.client.LONGEST_BODY", 1000)
    with Origin(sending(UNTIL_CLOSE, b"x" * 1000)) as origin:
        assert len((await wire.call(get(origin.url))).body) == 1000
    with Origin(sending(UNTIL_CLOSE, b"x" * 1001)) as origin, pytest.raises(WireLost, match="1000"):
        await wire.call(get(origin.url))


async def test_a_coded_answer_is_lost_or_left_out(wire: Wire) -> None:
    """A success that cannot be read is no answer; of a failure the status is what counts."""
    coded = b"Content-Encoding: br\r\nContent-Length: 3\r\n\r\nabc"
    with Origin(sending(b"HTTP/1.1 200 OK\r\n" + coded)) as origin, pytest.raises(WireLost, match="br"):
        await wire.call(get(origin.url))
    with Origin(sending(b"HTTP/1.1 404 No\r\n" + coded)) as origin:
        answer = await wire.call(get(origin.url))
        assert (answer.status, answer.body) == (404, b"")


async def test_204_has_no_body(wire: Wire) -> None:
    """An answer without a body is whole when its head is."""
    with Origin(until_gone(b"HTTP/1.1 204 No Content\r\n\r\n")) as origin:
        with anyio.fail_after(10):
            assert (await wire.call(get(origin.url))).status == 204


async def test_many_at_once(wire: Wire) -> None:
    """Nothing is shared: twenty quiet streams keep no call waiting."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED + chunk(event(1)))
        gone(connection)

    with Origin(answer) as quiet, Origin(sending(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) as origin:
        streams = [await wire.stream(get(quiet.url), max_event_bytes=LIMIT) for _ in range(20)]
        answers: list[bytes] = []

        async def call() -> None:
            answers.append((await wire.call(get(origin.url))).body)

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(call)
        for stream in streams:
            assert await stream.read() is not None
            await stream.aclose()
    assert answers == [b"ok"] * 20
