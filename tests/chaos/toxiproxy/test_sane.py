"""The embedded server where the real one hangs, dies or is unsafe: it does the sane thing.

Numbers are those of Shopify/toxiproxy's issues.
"""

import asyncio
import contextlib
import http.client
import random
import threading
import time

import pytest

from reattach_chaos.toxiproxy.embedded.proxy import Proxy
from toxiproxy_stage import FOR_EVER_MS, PATIENCE, Api, Side, Stage, api, pour, stage, toxiproxy

__all__ = ["api", "stage"]


@pytest.fixture(scope="module")
def server():
    with toxiproxy("embedded") as running:
        yield running


def blocked(stage: Stage) -> tuple[Side, Side, bytes]:
    """Return a connection that is full up to the server, since its client does not read, and what was sent into it."""
    client, server = stage.connected()
    data = random.Random(7).randbytes(40_000_000)
    sent = 0
    server.sock.settimeout(0.3)
    with contextlib.suppress(TimeoutError):
        while sent < len(data):
            sent += server.sock.send(data[sent : sent + 65536])
    assert sent < len(data), "nothing holds the server back"
    server.sock.settimeout(PATIENCE)
    return client, server, data[:sent]


def test_toxics_change_while_a_client_does_not_read(stage, api):
    """B80, #558, #164: adding, changing and removing are answered, the list too; and no byte is lost by it."""
    stage.toxic("noop")
    client, server, data = blocked(stage)
    latency = stage.toxic("latency", latency=1)
    assert api("PATCH", latency, {"attributes": {"latency": 2}}).status == 200
    stage.removed(latency)
    slicer = stage.toxic("slicer", average_size=1000)
    stage.removed(slicer)
    assert api("GET", "/proxies").status == 200
    server.closes()
    found, end = client.rest()
    assert (found == data, end) == (True, "fin")


def test_a_timeout_is_removed_while_a_client_does_not_read(stage, api):
    """#88, #168: answered, and closed once what was on its way has been read."""
    client, _, data = blocked(stage)
    path = stage.toxic("timeout", timeout=0)
    stage.removed(path)
    found, end = client.rest()
    assert (data.startswith(found), end) == (True, "fin")


def remove_limit_first(stage: Stage) -> None:
    stage.removed(f"{stage.path}/toxics/limit_data_downstream")
    stage.removed(f"{stage.path}/toxics/slow_close_downstream")


def reset(stage: Stage) -> None:
    assert stage.api("POST", "/reset").status == 204


@pytest.mark.parametrize("undo", [remove_limit_first, reset])
@pytest.mark.parametrize("leaves", [False, True])
def test_no_order_of_removals_ends_the_process(stage, undo, leaves):
    """A stall is taken apart in the orders that end a real server: it goes on, and the connection is closed with no byte more."""
    stage.toxic("limit_data", bytes=10)
    stage.toxic("slow_close", delay=FOR_EVER_MS)
    client, server = stage.connected()
    server.sends(b"0123456789ABCDEF")
    assert client.gets(10) == b"0123456789"
    if leaves:
        client.closes()
    undo(stage)
    stage.toxic("latency", latency=1)
    if not leaves:
        assert client.rest() == (b"", "fin")
    client, server = stage.connected()
    server.sends(b"alive")
    assert client.gets(5) == b"alive"


def test_a_slicer_without_a_size_is_declined(stage, api):
    """A real server dies of the first data. 400 with the reason; also as a change."""
    answer = api("POST", f"{stage.path}/toxics", {"type": "slicer"})
    assert answer.status == 400
    assert "average_size" in answer.json["error"]
    path = stage.toxic("slicer", average_size=5)
    assert api("PATCH", path, {"attributes": {"average_size": 0}}).status == 400
    assert api("GET", path).json["attributes"]["average_size"] == 5


def test_a_stall_whose_client_has_left_is_removed_at_once(stage):
    """A real server takes a fixed 5.0 s (#210)."""
    path = stage.toxic("bandwidth", rate=0)
    client, server = stage.connected()
    server.sends(b"waits")
    client.closes()
    began = time.monotonic()
    stage.removed(path)
    assert time.monotonic() - began < 4.0


def test_a_slow_upstream_holds_up_nobody_else(stage, monkeypatch):
    """One connection's dial is not answered; the next one of the same proxy is served (a real server dials in its accept loop)."""
    dial = asyncio.BaseEventLoop.create_connection
    dialled = []

    async def slow_at_first(self, *args, **more):
        dialled.append(args)
        if len(dialled) == 1:
            await asyncio.Event().wait()
        return await dial(self, *args, **more)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", slow_at_first)
    waiting = stage.client()
    client, server = stage.connected()
    server.sends(b"served")
    assert client.gets(6) == b"served"
    assert waiting.is_silent()
    stage.enabled(False)
    assert waiting.rest() == (b"", "fin")


def test_a_proxy_without_an_address_listens_on_loopback_only(api):
    """A real server opens it on all interfaces."""
    answer = api("POST", "/proxies", {"name": "anywhere", "upstream": "127.0.0.1:9"})
    assert answer.json["listen"].startswith("127.0.0.1:")
    api("DELETE", "/proxies/anywhere")


def test_a_name_with_a_slash_can_be_addressed(stage, api):
    """A real server never finds it again."""
    stage.made("a/b")
    assert api("GET", "/proxies/a%2Fb").json["name"] == "a/b"
    assert api("DELETE", "/proxies/a%2Fb").status == 204


def test_it_has_no_metrics(api):
    """As a real server without the flags for them: a plain 404."""
    answer = api("GET", "/metrics")
    assert (answer.status, answer.text) == (404, "404 page not found\n")


def test_a_web_page_is_refused(api):
    """Any page that somebody reads could otherwise open ports on that machine."""
    answer = api("POST", "/proxies", {"name": "evil", "upstream": "127.0.0.1:22"}, Origin="http://evil.example")
    assert answer.status == 403
    assert "evil" not in api("GET", "/proxies").json


def test_the_api_serves_many_requests_on_one_connection(server):
    """Kept alive; bodies in chunks."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=PATIENCE)
    for _ in range(3):
        connection.request("POST", "/proxies", iter([b'{"name"', b': "", "upstream": "x"}']), encode_chunked=True)
        answer = connection.getresponse()
        assert (answer.status, b"missing required field" in answer.read()) == (400, True)
        assert connection.sock is not None, "closed by the server"
    connection.close()


def test_a_client_that_asks_first_is_told_to_go_on(stage):
    """`Expect: 100-continue`, as curl sends it with a large body."""
    raw = stage.raw_api()
    raw.sends(b"POST /populate HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert raw.gets(12) == b"HTTP/1.1 100"
    raw.sends(b"[]")
    raw.finishes()
    assert b"HTTP/1.1 201" in raw.rest()[0]


def test_nonsense_is_a_400_and_ends_its_own_connection_only(stage, api):
    """As with any HTTP server."""
    raw = stage.raw_api()
    raw.sends(b"nonsense\r\n\r\n")
    data, end = raw.rest()
    assert (data.startswith(b"HTTP/1.1 400"), end) == (True, "fin")
    assert api("GET", "/version").status == 200


def test_a_body_that_is_too_large_is_refused(stage):
    """At a mebibyte: the connection ends, whatever length was announced."""
    raw = stage.raw_api()
    raw.sends(b"POST /proxies HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
    raw.sends(bytes(1_000_000))
    assert raw.is_silent()
    began = time.monotonic()
    with contextlib.suppress(ConnectionError):
        raw.sends(bytes(100_000))
    data, _ = raw.rest()  # a reset may overtake the answer, since more of the body may be there
    assert data == b"" or data.startswith(b"HTTP/1.1 413")
    assert time.monotonic() - began < 10, "ended only because the rest did not come"


def test_a_stalled_proxy_holds_little(stage):
    """Back-pressure: what a stall keeps is bounded by the sockets' buffers, not by what the server would send."""
    stage.toxic("bandwidth", rate=0)
    client, server = stage.connected()
    server.sock.settimeout(0.3)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 64_000_000:
            sent += server.sock.send(bytes(65536))
    assert sent < 64_000_000
    assert client.is_silent()


def test_nothing_is_left_of_many_connections():
    """Two hundred cuts: no thread, no task, no socket of theirs stays."""
    before = threading.active_count()
    with toxiproxy("embedded") as running:
        stage = Stage(Api(running.url))
        stage.toxic("limit_data", bytes=3)
        for _ in range(200):
            client, server = stage.connected()
            server.sends(b"abcdef")
            assert client.rest() == (b"abc", "fin")
            client.closes()
            server.closes()
        stage.close()
    assert threading.active_count() == before


def test_much_passes_through_every_toxic(stage):
    """Each of them at once, over chunk boundaries, in order."""
    stage.toxic("latency", latency=1)
    stage.toxic("bandwidth", rate=100_000)
    stage.toxic("slicer", average_size=5_000, size_variation=4_000)
    stage.toxic("slow_close", delay=1)
    data = random.Random(7).randbytes(1_500_000)
    stage.toxic("limit_data", bytes=len(data) - 7)
    client, server = stage.connected()
    assert pour(server, client, data) == (data[:-7], "fin")


def test_a_byte_a_piece_blocks_nobody(stage, api):
    """Twenty thousand pieces without a pause; the API answers meanwhile, and none is lost."""
    stage.toxic("slicer", average_size=1)
    data = random.Random(7).randbytes(20_000)
    client, server = stage.connected()
    server.sends(data)
    assert api("GET", "/version").status == 200
    assert client.gets(len(data)) == data


def test_a_client_that_is_accepted_as_the_proxy_goes_down_is_closed(stage, monkeypatch):
    """Even in the turn of the loop between the accept and the first callback of its socket."""
    accept = Proxy._accept

    def accepted_too_late(self):
        end = accept(self)
        end._connection.abort()
        return end

    monkeypatch.setattr(Proxy, "_accept", accepted_too_late)
    stage.enabled(False)
    stage.enabled(True)
    began = time.monotonic()
    assert stage.client().rest()[0] == b""
    stage.enabled(False)
    assert time.monotonic() - began < 4.0, "the proxy waited for a connection that nobody closed"


def test_half_a_surrogate_pair_is_no_name(api):
    """It could not be shown: a replacement stands for it, and the API goes on."""
    answer = api("POST", "/proxies", b'{"name": "\\ud800", "upstream": "127.0.0.1:9"}')
    assert (answer.status, answer.json["name"]) == (201, "?")
    assert api("DELETE", "/proxies/%3F").status == 204
