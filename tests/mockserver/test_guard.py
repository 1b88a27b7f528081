"""The host's own bounds, over real connections: in time, in bytes, in number; each with an answer where one can be read.

Section 8 of the protocol: hostile input is bounded and refused with a problem.
"""

import asyncio
import gc
import json

import pytest
import uvicorn
from uvicorn.server import ServerState

from hostile_client import UPGRADE, RawClient, frame
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.guard import Guard
from reattach_mockserver.library import Library
from reattach_mockserver.live import LiveServer
from reattach_mockserver.patience import Patience
from reattach_mockserver.pinging import PingingProtocol
from reattach_mockserver.scenarios.script import Blob, RawEvent, Repeat, Script, Wait
from reattach_mockserver.settings import Limits, Settings

pytestmark = pytest.mark.anyio

HASTY = Patience(head=0.3, body=0.3, stall=0.3, linger=0.3)
PATIENT = Patience(linger=0.3)
GET = b"GET /.well-known/reattach HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\n"
LARGE = Script(name="large", clock="virtual", steps=(Repeat(times=40, steps=(Blob(bytes=200_000),)),))
OPEN = Script(name="open", steps=(RawEvent(type="note"), Wait(ms=3_600_000)))


def serving(patience: Patience = PATIENT, **settings) -> LiveServer:
    return LiveServer(
        Settings(scripts=Library(), default="hello", patience=patience, **settings), scripts={"open": OPEN}
    )


@pytest.fixture(scope="module")
def server():
    """A server whose patience is that of every day; none of these tests may change it."""
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def hasty():
    """A server that waits for nobody."""
    with serving(HASTY, limits=Limits(body_bytes=100_000)) as running:
        yield running


def problem(raw):
    assert raw.is_problem, raw
    return json.loads(raw.data.partition(b"\r\n\r\n")[2])


def is_well(server) -> bool:
    """Tell whether a whole request is answered."""
    with RawClient(server.url) as client:
        client.send(GET + b"Connection: close\r\n\r\n")
        return client.all().status == 200


# in time --------------------------------------------------------------------------------------------------------------


def test_a_connection_that_says_nothing_is_closed(hasty):
    """Without a word: there is nothing to answer."""
    with RawClient(hasty.url) as client:
        raw = client.all()
    assert (raw.data, raw.ended) == (b"", True)


@pytest.mark.parametrize(
    ("first", "dripped"), [(b"", GET + b"X-Long: " + b"x" * 100_000), (GET, b"X: y\r\n"), (UPGRADE, b"X: y\r\n")]
)
def test_a_head_that_comes_a_byte_at_a_time_is_refused_in_time(hasty, first, dripped):
    """Slowloris: 408, counted from the first byte, not from the last."""
    with RawClient(hasty.url) as client:
        client.send(first)
        raw = client.drip(dripped)
    assert raw.ended
    assert (raw.status, problem(raw)["code"]) == (408, "request_timeout")
    assert is_well(hasty)


@pytest.mark.parametrize("framing", [b"Content-Length: 90000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n1\r\n"])
def test_a_body_that_comes_a_byte_at_a_time_is_refused_in_time(hasty, framing):
    """408, and nothing was created."""
    before = hasty.counts
    with RawClient(hasty.url) as client:
        client.send(POST + framing)
        raw = client.drip(b"x\r\n1\r\n" if b"chunked" in framing else b'{"input": "')
    assert raw.ended
    assert (raw.status, problem(raw)["code"]) == (408, "request_timeout")
    assert hasty.counts == before


@pytest.mark.parametrize("framing", [b"Content-Length: 50\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}"])
def test_a_body_shorter_than_declared_is_refused_in_time(hasty, framing):
    with RawClient(hasty.url) as client:
        client.send(POST + framing)
        raw = client.all()
    assert (raw.status, raw.ended) == (408, True)


def test_whoever_waits_for_100_continue_and_then_says_nothing_is_refused_in_time(hasty):
    with RawClient(hasty.url) as client:
        client.send(POST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        raw = client.all()
    assert raw.data.startswith(b"HTTP/1.1 100 ")
    assert b"request_timeout" in raw.data
    assert raw.ended


def test_a_request_that_is_being_answered_has_all_the_time(hasty):
    """A long poll outlives the patience for a request, and so does the next request on its connection."""
    body = b'{"input": {"scenario": "open"}}'
    with RawClient(hasty.url) as client:
        client.send(POST.replace(b": k", b": poll") + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        run_id = json.loads(client.until(b'"metadata":null}').partition(b"\r\n\r\n")[2])["id"]
        run = hasty.call(lambda: _grown(hasty, run_id, 3))
        for _ in range(2):
            poll = f"GET /v1/runs/{run_id}/events?after={run.epoch}.3&wait_ms=700 HTTP/1.1\r\nHost: x\r\n\r\n"
            client.send(poll.encode())
            assert b'"events":[],' in client.until(b'"last_sequence"')


def test_a_connection_that_was_used_may_rest(hasty):
    """Longer than a head may take: clients keep idle connections."""
    with RawClient(hasty.url) as client:
        client.send(GET + b"\r\n")
        client.until(b"endpoints")
        assert not client.some(0.6).ended
        client.send(GET + b"\r\n")
        client.until(b"endpoints")


# in bytes -------------------------------------------------------------------------------------------------------------


def test_a_head_without_end_is_refused_after_so_many_bytes(server):
    """431; what is parsed and kept is bounded, however fast it comes."""
    with RawClient(server.url) as client:
        client.send(GET)
        sent = 0
        while sent < 64_000_000 and client.send(b"X: " + b"x" * 8_000 + b"\r\n"):
            sent += 8_005
        raw = client.all()
    assert sent < 40_000_000
    assert raw.ended
    assert raw.status in (431, 0), "or it was reset before it could be read"


def test_a_head_of_more_than_is_parsed_is_told_so(server):
    with RawClient(server.url) as client:
        client.send(GET + (b"X: " + b"x" * 8_000 + b"\r\n") * 50)
        raw = client.all()
    assert (raw.status, problem(raw)["code"]) == (431, "headers_too_large")


def test_a_body_without_end_is_refused_at_the_limit_and_read_no_further_than_so_much(hasty):
    """413 can be read by whoever still sends; then it ends."""
    with RawClient(hasty.url) as client:
        client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        piece, sent = b"10000\r\n" + b"x" * 65_536 + b"\r\n", 0
        while sent < 64_000_000 and client.send(piece):
            sent += len(piece)
        raw = client.all()
    assert sent < 40_000_000
    assert raw.status in (413, 0), "or it was reset before it could be read"
    assert is_well(hasty)


def test_a_path_or_query_of_half_a_megabyte_is_refused(server):
    with RawClient(server.url) as client:
        client.send(b"GET /v1/runs?idempotency_key=" + b"a" * 500_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        raw = client.all()
    assert raw.status == 431


@pytest.mark.parametrize("query", ["?" + "a=1&" * 12_000, "?after=" + "x" * 60_000, "/" * 60_000])
def test_the_line_of_a_request_counts_as_its_headers_do(server, query):
    """A query is not read before its length is known to be sane."""
    with RawClient(server.url) as client:
        client.send(f"GET /v1/runs{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        raw = client.all()
    assert (raw.status, problem(raw)["code"]) == (431, "headers_too_large")


def test_requests_by_the_thousand_in_one_packet_are_not_kept(server):
    with RawClient(server.url) as client:
        client.send((GET + b"\r\n") * 5_000)
        raw = client.all()
    assert raw.ended
    assert raw.data.count(b"HTTP/1.1 ") < 64
    assert is_well(server)


# what is no HTTP ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40) + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /v1/runs/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nBad Name: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n",
        POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        UPGRADE.replace(b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", b"") + b"\r\n",
        UPGRADE.replace(b"Version: 13", b"Version: 12") + b"\r\n",
    ],
)
def test_what_is_no_request_is_refused_with_a_problem(server, data):
    with RawClient(server.url) as client:
        client.send(data)
        raw = client.all()
    assert raw.ended
    assert (raw.status, problem(raw)["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("lines", [b"X: " + b"x" * 9_000 + b"\r\n", b"X: y\r\n" * 200])
def test_an_upgrade_that_the_library_would_drop_without_a_word_is_refused(server, lines):
    """It waited for ever, and kept its connection: longer lines, or more of them, than the WebSocket library parses."""
    with RawClient(server.url) as client:
        client.send(UPGRADE + lines + b"\r\n")
        raw = client.all()
    assert (raw.status, problem(raw)["code"]) == (431, "headers_too_large")


def test_garbage_behind_a_stream_ends_the_stream_and_puts_nothing_into_it(server):
    """What would have been a second answer is none: half of the first stands there."""
    body = b'{"input": {"scenario": "open"}}'
    head = b"Accept: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(body)
    with RawClient(server.url) as client:
        client.send(POST.replace(b": k", b": garbage") + head + body)
        client.until(b"stream.attached")
        client.send(b"\x00\x01\x02 garbage\r\n\r\n")
        raw = client.all()
    assert raw.ended
    assert b"HTTP/1.1" not in raw.data


def test_garbage_behind_several_requests_is_one_refusal_and_no_accident(server, caplog):
    """The first is being answered, the second waits: neither writes behind the refusal."""
    body = b'{"input": {"scenario": "hello"}}'
    create = POST.replace(b": k", b": several") + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    with RawClient(server.url) as client:
        client.send(create + GET + b"\r\n" + b"\x00 garbage\r\n\r\n")
        raw = client.all()
    assert raw.ended
    assert raw.data.count(b"HTTP/1.1 ") == 1
    assert is_well(server)
    assert caplog.text == ""


# in number ------------------------------------------------------------------------------------------------------------


def test_more_connections_than_may_be_are_told_to_come_back():
    """503 with Retry-After, and the others are not disturbed; a place that is free is given away."""
    with serving(Patience(connections=3, linger=0.3)) as server:
        held = [RawClient(server.url) for _ in range(3)]
        for client in held:
            client.send(GET + b"\r\n")
            client.until(b"endpoints")
        with RawClient(server.url) as client:
            raw = client.all()
        assert (raw.status, problem(raw)["code"]) == (503, "overloaded")
        assert b"retry-after: 1" in raw.data
        for client in held:
            client.send(GET + b"Connection: close\r\n\r\n")
            assert client.all().status == 200
            client.socket.close()
        server.call(lambda: _until(lambda: not _live(Guard)))
        assert is_well(server)


# WebSocket frames -----------------------------------------------------------------------------------------------------


def socket_to(server, more: bytes = b"") -> RawClient:
    client = RawClient(server.url)
    client.send(UPGRADE + more + b"\r\n")
    client.until(b"\r\n\r\n")
    return client


def test_a_message_in_fragments_without_end_is_1009(server):
    """Empty ones, that no limit on bytes would ever end."""
    with socket_to(server) as client:
        client.send(frame(1, b"{", fin=False) + frame(0, fin=False) * 20_000)
        raw = client.all()
    assert raw.ended
    assert frame(8, b"\x03\xf1too many fragments", masked=False) in raw.data


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(1, b"\xff\xfe"), 1007),
        (frame(1, b"{}", masked=False), 1002),
        (frame(3, b"{}"), 1002),
        (frame(1, b"{}", reserved=4), 1002),
        (frame(0, b"{}"), 1002),
        (frame(9, b"x" * 126), 1002),
        (frame(9, b"x", fin=False), 1002),
        (frame(8, b"x"), 1002),
        (frame(1, b"x" * 5_000_000), 1009),
        (frame(2, b"{}"), 4400),
        (frame(1, b"x" * 1_100_000), 1009),
        (frame(1, b"{"), 4400),
    ],
)
def test_a_frame_that_may_not_be_ends_the_socket_with_its_code(server, sent, code):
    """RFC 6455's own, or the protocol's; a message that is HTTP's to refuse says why first."""
    with socket_to(server) as client:
        client.offer(sent, 5.0)
        said = client.until(code.to_bytes(2))
    assert said[: said.index(code.to_bytes(2)) - 1].endswith(b"\x88"), "the code of a close frame"
    assert code < 1009 or len(sent) > 4_000_000 or b'"type":"error"' in said


async def test_text_that_is_none_with_a_goodbye_behind_it_ends_the_socket(caplog):
    """In one packet: the library has closed already when the text is looked at; it was an accident of the event loop's."""
    transport, protocol = await upgraded()
    protocol.data_received(frame(1, b"\xff") + frame(8, b"\x03\xe8"))
    assert transport.taken() == frame(8, b"\x03\xe8", masked=False)
    protocol.connection_lost(None)
    assert caplog.text == ""


async def test_pings_of_a_peer_that_reads_nothing_cost_no_memory():
    """RFC 6455 lets us answer the last of several pings; each had an answer kept for it, without end."""
    transport, protocol = await upgraded()
    protocol.data_received(frame(9, b"one"))
    assert transport.taken() == frame(10, b"one", masked=False)
    protocol.pause_writing()
    for number in range(1_000):
        protocol.data_received(frame(9, b"%d" % number))
    assert transport.taken() == b""
    protocol.resume_writing()
    assert transport.taken() == frame(10, b"999", masked=False)
    protocol.connection_lost(None)


def test_a_socket_that_never_says_who_it_is_is_closed_in_time():
    """PROTOCOL, section 6: 1008, also with pings and empty fragments to seem alive."""
    with serving(tokens=parse_tokens(["alice a1"]), hello_wait=0.3) as server, socket_to(server) as client:
        raw = client.drip(frame(9) + frame(9), until=b"\x03\xf0")
    assert b"unauthenticated" in raw.data
    assert raw.data.index(b"\x88") < raw.data.index(b"\x03\xf0")


# readers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("face", ["sse", "socket"])
def test_a_reader_that_takes_nothing_for_good_is_cut_and_others_have_everything(face):
    """RS-23, RS-80: without a terminator, so that it can be resumed; its memory is bounded until then."""
    with LiveServer(
        Settings(scripts=Library(), default="hello", patience=Patience(stall=1.0)),
        scripts={"open": OPEN, "large": LARGE},
    ) as server:
        body = b'{"input": {"scenario": "large"}}'
        with RawClient(server.url) as client:
            client.send(POST + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            run_id = json.loads(client.until(b'"metadata":null}').partition(b"\r\n\r\n")[2])["id"]
        stream = f"GET /v1/runs/{run_id}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n".encode()
        stalled = RawClient(server.url, receive_buffer=4_096)
        if face == "sse":
            stalled.send(stream)
        else:
            stalled.send(UPGRADE + b"\r\n")
            stalled.until(b"\r\n\r\n")
            stalled.send(frame(1, json.dumps({"type": "resume", "run_id": run_id, "cursor": None}).encode()))
        server.call(lambda: _until(lambda: server.engine.hub.readers(run_id) == 1))
        with RawClient(server.url) as good:
            good.send(stream.replace(b"Host", b"Connection: close\r\nHost"))
            assert good.all().data.count(b"event: blob") == 40
        server.call(lambda: _until(lambda: server.engine.hub.readers(run_id) == 0))
        rest = stalled.all()
        stalled.socket.close()
        assert rest.ended
        assert not rest.data.endswith(b"0\r\n\r\n"), "cut, not ended"
        assert rest.data.count(b'"type":"blob"') < 40


def _live(kind: type) -> list:
    """Return the connections of this kind that are open."""
    return [each for each in gc.get_objects() if isinstance(each, kind) and each in each.connections]


class Sink(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = b""

    def write(self, data: bytes) -> None:
        self._kept += data

    def taken(self) -> bytes:
        kept, self._kept = self._kept, b""
        return kept

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return len(self._kept)


async def upgraded() -> tuple[Sink, PingingProtocol]:
    """Return a socket that is open, whose peer is the test."""

    async def application(scope, receive, send):
        await send({"type": "websocket.accept", "subprotocol": "reattach.v1"})
        await receive()
        while (await receive())["type"] != "websocket.disconnect":
            pass

    config = uvicorn.Config(application, ws=PingingProtocol, log_config=None, ws_per_message_deflate=False)
    config.load()
    sink, protocol = Sink(), PingingProtocol(config, ServerState(), {})
    protocol.connection_made(sink)
    protocol.data_received(UPGRADE + b"\r\n")
    await _until(lambda: protocol.handshake_complete)
    sink.taken()
    return sink, protocol


async def _grown(server, run_id: str, sequence: int):
    async with asyncio.timeout(20):
        while (run := await server.engine.run(run_id)).last_sequence < sequence:  # noqa: ASYNC110 (as below)
            await asyncio.sleep(0.01)
    return run


async def _until(condition) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (what is waited for sets no event)
            await asyncio.sleep(0.01)


def test_nothing_is_left_of_anybody(server, hasty):
    """After all the above: no connection, no reader, no task but the server's own."""
    for each in (server, hasty):
        each.call(lambda each=each: _until(lambda: not each.engine.hub._watchers))
        each.call(lambda: _until(lambda: len(asyncio.all_tasks()) < 16))
    hasty.call(lambda: _until(lambda: not _live(Guard) and not _live(PingingProtocol)))
