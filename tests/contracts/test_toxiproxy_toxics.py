"""What toxics and cuts do to bytes and closes, on the embedded server and on the real one.

The test is client and server. Facts are bytes and ends, never a pace: where time is looked at, only that something did not come
too early. What a real server would hang or die of is in tests/chaos/toxiproxy/test_sane.py.
"""

import random
import socket
import time

import pytest

from toxiproxy_stage import FOR_EVER_MS, QUIET, Side, api, pour, server, stage

__all__ = ["api", "server", "stage"]

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
RESPONSE = bytes(range(256)) + b"tail" * 26  # 360 bytes, each place of them known


def carries(client: Side, server: Side) -> None:
    """A byte passes both ways: the connection stands, with all of its toxics."""
    client.sends(b"?")
    assert server.gets(1) == b"?"
    server.sends(b"!")
    assert client.gets(1) == b"!"


# -- without toxics


def test_bytes_pass_unchanged_both_ways(stage):
    """Three megabytes, more than all buffers between."""
    data = random.Random(7).randbytes(3_000_000)
    client, server = stage.connected()
    assert pour(client, server, data) == (data, "open")
    assert pour(server, client, data) == (data, "open")


@pytest.mark.parametrize("who", ["client", "server"])
def test_a_close_passes(stage, who):
    """After the data."""
    client, server = stage.connected()
    here, there = (client, server) if who == "client" else (server, client)
    here.sends(b"the end")
    here.closes()
    assert there.rest() == (b"the end", "fin")


def test_a_half_close_is_not_carried(stage):
    """Who shuts down the write side loses the answer: both sides are closed."""
    client, server = stage.connected()
    client.sends(REQUEST)
    client.finishes()
    assert server.rest() == (REQUEST, "fin")
    assert client.rest() == (b"", "fin")


def test_an_upstream_that_is_not_there(stage, api):
    """The connect succeeds, then it is closed, one way or the other."""
    stage.upstream_socket.close()
    client = stage.client()
    data, _ = client.rest()
    assert data == b""


def test_an_upstream_that_is_no_address(stage, api):
    """Not checked when the proxy is made; connections are closed."""
    api("PATCH", stage.path, {"upstream": "nonsense"})
    stage.proxy = api("GET", stage.path).json
    assert stage.client().rest()[0] == b""


@pytest.mark.parametrize("again", [1, 2])
def test_disabled_is_refused_and_enabled_is_served(stage, again):
    """`down`: closed on both sides with every byte that came, then ECONNREFUSED, then the same port again."""
    client, server = stage.connected()
    server.sends(RESPONSE)
    assert client.gets(len(RESPONSE)) == RESPONSE
    for _ in range(again):
        stage.enabled(False)
    assert (client.rest(), server.rest()) == ((b"", "fin"), (b"", "fin"))
    with pytest.raises(ConnectionRefusedError):
        stage.client()
    stage.enabled(True)
    carries(*stage.connected())


# -- limit_data


@pytest.mark.parametrize("limit", [1, 119, 359, 360])
def test_limit_data_cuts_after_exactly_that_byte(stage, limit):
    """FIN, and the server's side is closed too; also where not one byte more would have come."""
    stage.toxic("limit_data", bytes=limit)
    client, server = stage.connected()
    client.sends(REQUEST)
    assert server.gets(len(REQUEST)) == REQUEST
    server.sends(RESPONSE)
    assert client.rest() == (RESPONSE[:limit], "fin")
    assert server.rest()[0] == b""


def test_limit_data_is_exact_for_much(stage):
    """Nothing of three megabytes is lost in a buffer."""
    data = random.Random(7).randbytes(3_000_000)
    stage.toxic("limit_data", bytes=len(data) - 1)
    client, server = stage.connected()
    assert pour(server, client, data) == (data[:-1], "fin")


@pytest.mark.parametrize("limit", [0, -4])
def test_limit_data_0_closes_when_the_first_byte_comes(stage, limit):
    """Not before: the server sees the whole request and answers; the client gets nothing."""
    stage.toxic("limit_data", bytes=limit)
    client, server = stage.connected()
    client.sends(REQUEST)
    assert server.gets(len(REQUEST)) == REQUEST
    assert client.is_silent()
    server.sends(RESPONSE)
    assert client.rest() == (b"", "fin")


def test_limit_data_counts_each_connection(stage):
    """And every byte of its direction, over many writes."""
    stage.toxic("limit_data", bytes=10)
    for _ in range(2):
        client, server = stage.connected()
        for begin in range(0, 12, 4):
            server.sends(RESPONSE[begin : begin + 4])
        assert client.rest() == (RESPONSE[:10], "fin")


def test_limit_data_on_a_live_connection_counts_from_then(stage):
    """150 received, then a limit of 50: 200."""
    client, server = stage.connected()
    carries(client, server)
    server.sends(RESPONSE[:150])
    assert client.gets(150) == RESPONSE[:150]
    stage.toxic("limit_data", bytes=50)
    server.sends(RESPONSE[150:])
    assert client.rest() == (RESPONSE[150:200], "fin")


def test_a_limit_below_what_has_passed_closes_at_the_next_byte(stage, api):
    """Not at once."""
    path = stage.toxic("limit_data", bytes=100)
    client, server = stage.connected()
    server.sends(RESPONSE[:60])
    assert client.gets(60) == RESPONSE[:60]
    api("PATCH", path, {"attributes": {"bytes": 20}})
    assert client.is_silent()
    server.sends(b"x")
    assert client.rest() == (b"", "fin")


def test_a_raised_limit_goes_on_counting(stage, api):
    """What has passed stays counted."""
    path = stage.toxic("limit_data", bytes=100)
    client, server = stage.connected()
    server.sends(RESPONSE[:60])
    assert client.gets(60) == RESPONSE[:60]
    api("PATCH", path, {"attributes": {"bytes": 110}})
    server.sends(RESPONSE[60:])
    assert client.rest() == (RESPONSE[60:110], "fin")


@pytest.mark.parametrize("short", [0, 5])
def test_limit_data_upstream_cuts_the_request(stage, short):
    """At its length: the server got all of it. Below: so many bytes. The client gets FIN and nothing either way."""
    stage.toxic("limit_data", "upstream", bytes=len(REQUEST) - short)
    client, server = stage.connected()
    client.sends(REQUEST)
    assert server.rest() == (REQUEST[: len(REQUEST) - short], "fin")
    assert client.rest() == (b"", "fin")


# -- reset_peer


@pytest.mark.parametrize("order", [("limit_data", "reset_peer"), ("reset_peer", "limit_data")])
@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_a_silent_reset_peer_turns_the_cut_into_rst(stage, order, stream):
    """Toxicity 0, either direction, either order: exactly the limit, then RST; on both sides."""
    for kind in order:
        if kind == "limit_data":
            stage.toxic("limit_data", bytes=119)
        else:
            stage.toxic("reset_peer", stream, toxicity=0)
    client, server = stage.connected()
    server.sends(RESPONSE)
    assert client.rest() == (RESPONSE[:119], "rst")
    assert server.rest() == (b"", "rst")


@pytest.mark.parametrize("stream", ["upstream", "downstream"])
def test_reset_peer_resets_at_the_first_byte(stage, stream):
    """And drops it."""
    stage.toxic("reset_peer", stream)
    client, server = stage.connected()
    here, there = (client, server) if stream == "upstream" else (server, client)
    here.sends(b"first")
    assert there.rest() == (b"", "rst")
    assert here.rest() == (b"", "rst")


def test_reset_peer_waits_its_timeout(stage):
    """From the first byte on; not less."""
    stage.toxic("reset_peer", timeout=150)
    client, server = stage.connected()
    began = time.monotonic()
    server.sends(b"first")
    assert client.rest() == (b"", "rst")
    assert time.monotonic() - began >= 0.14


def test_reset_peer_on_a_live_connection_closes_with_fin(stage):
    """RST is settled when a connection begins."""
    client, server = stage.connected()
    carries(client, server)
    stage.toxic("reset_peer")
    server.sends(b"first")
    assert client.rest() == (b"", "fin")


def test_disabling_under_a_silent_reset_peer_resets(stage):
    """At that moment; what was received stays."""
    stage.toxic("reset_peer", toxicity=0)
    client, server = stage.connected()
    server.sends(RESPONSE)
    while len(client.sock.recv(1000, socket.MSG_PEEK)) < len(RESPONSE):
        pass
    stage.enabled(False)
    assert client.rest() == (RESPONSE, "rst")
    assert server.rest() == (b"", "rst")


# -- stalls


def test_a_stall_after_exactly_so_many_bytes(stage):
    """limit_data, then a long slow_close: N bytes, then silence; the server is held back, not closed."""
    stage.toxic("limit_data", bytes=119)
    stage.toxic("slow_close", delay=FOR_EVER_MS)
    client, server = stage.connected()
    server.sends(RESPONSE)
    assert client.gets(119) == RESPONSE[:119]
    assert client.is_silent()
    assert server.is_silent()
    # Closed all the same when the proxy goes.
    stage.enabled(False)
    assert client.rest() == (b"", "fin")


def test_a_short_slow_close_delays_only_the_fin(stage):
    """N bytes at once, FIN so much later, not less."""
    stage.toxic("limit_data", bytes=119)
    stage.toxic("slow_close", delay=150)
    client, server = stage.connected()
    began = time.monotonic()
    server.sends(RESPONSE)
    assert client.gets(119) == RESPONSE[:119]
    assert client.rest() == (b"", "fin")
    assert time.monotonic() - began >= 0.14


def test_the_order_matters(stage):
    """slow_close before limit_data: FIN at once, since nothing delays what comes after."""
    stage.toxic("slow_close", delay=FOR_EVER_MS)
    stage.toxic("limit_data", bytes=119)
    client, server = stage.connected()
    server.sends(RESPONSE)
    assert client.rest() == (RESPONSE[:119], "fin")


def test_a_half_open_peer(stage):
    """Timeout 0, then a long slow_close: silence even after the server has written and closed, and believes that it delivered."""
    stage.toxic("timeout", timeout=0)
    stage.toxic("slow_close", delay=FOR_EVER_MS)
    client, server = stage.connected()
    server.sends(RESPONSE)
    server.closes()
    assert client.is_silent(2 * QUIET)


def test_slow_close_lets_data_pass(stage):
    """Only the close comes later."""
    stage.toxic("slow_close", delay=150)
    client, server = stage.connected()
    carries(client, server)
    server.sends(b"last")
    began = time.monotonic()
    server.closes()
    assert client.gets(4) == b"last"
    assert client.rest() == (b"", "fin")
    assert time.monotonic() - began >= 0.14


def test_a_delayed_close_leaves_the_other_direction_open(stage):
    """A client that has finished still gets what the server sends, as long as its close is under way."""
    stage.toxic("slow_close", "upstream", delay=FOR_EVER_MS)
    client, server = stage.connected()
    client.sends(REQUEST)
    client.finishes()
    assert server.gets(len(REQUEST)) == REQUEST
    server.sends(RESPONSE)
    assert client.gets(len(RESPONSE)) == RESPONSE
    assert server.is_silent()


# -- timeout


def test_timeout_drops_and_closes(stage):
    """Nothing of what comes passes; the connection closes after so long without a chunk, not sooner."""
    stage.toxic("timeout", timeout=150)
    client, server = stage.connected()
    server.sends(RESPONSE)
    began = time.monotonic()
    assert client.rest() == (b"", "fin")
    assert time.monotonic() - began >= 0.1
    assert server.rest()[0] == b""


def test_timeout_0_never_closes_but_passes_a_close(stage):
    """Data vanish; the other side's close does not."""
    stage.toxic("timeout", timeout=0)
    client, server = stage.connected()
    server.sends(RESPONSE)
    assert client.is_silent()
    server.closes()
    assert client.rest() == (b"", "fin")


def test_removing_a_timeout_closes(stage):
    """B79: so it is no stall that heals."""
    path = stage.toxic("timeout", timeout=0)
    client, server = stage.connected()
    server.sends(RESPONSE)
    assert client.is_silent()
    stage.removed(path)
    assert client.rest() == (b"", "fin")


# -- bandwidth


def test_a_stall_by_bandwidth_0_heals_without_a_close(stage):
    """B79, on raw sockets: silence, then every byte that waited, in order, and the same connection goes on, both ways."""
    client, server = stage.connected()
    carries(client, server)
    paths = [stage.toxic("bandwidth", stream, rate=0) for stream in ("upstream", "downstream")]
    server.sends(RESPONSE)
    client.sends(REQUEST)
    assert client.is_silent()
    assert server.is_silent()
    for path in paths:
        stage.removed(path)
    assert client.gets(len(RESPONSE)) == RESPONSE
    assert server.gets(len(REQUEST)) == REQUEST
    carries(client, server)


def test_bandwidth_takes_its_time(stage):
    """20 kB at 100 kB/s: all of them, a fifth of a second or more."""
    data = random.Random(7).randbytes(20_000)
    stage.toxic("bandwidth", rate=100)
    client, server = stage.connected()
    began = time.monotonic()
    server.sends(data)
    assert client.gets(len(data)) == data
    assert time.monotonic() - began >= 0.15


def test_bandwidth_that_is_removed_lets_the_rest_through(stage):
    """A megabyte at 1 kB/s would take a quarter of an hour."""
    path = stage.toxic("bandwidth", rate=1)
    client, server = stage.connected()
    data = random.Random(7).randbytes(30_000)
    server.sends(data)
    first = client.gets(100)
    stage.removed(path)
    assert first + client.gets(len(data) - 100) == data
    carries(client, server)


# -- latency


def test_latency_holds_each_chunk_since_its_arrival(stage):
    """Not less than it says; and what arrives together leaves together: no queue."""
    stage.toxic("latency", latency=150)
    client, server = stage.connected()
    began = time.monotonic()
    for begin in range(0, 360, 5):
        server.sends(RESPONSE[begin : begin + 5])
    assert client.gets(360) == RESPONSE
    took = time.monotonic() - began
    assert 0.14 <= took < 8  # one after the other would be 10.8 s


def test_latency_that_is_removed_passes_what_waits_at_once(stage):
    """In order, and the connection goes on."""
    path = stage.toxic("latency", latency=FOR_EVER_MS)
    client, server = stage.connected()
    server.sends(RESPONSE)
    assert client.is_silent()
    stage.removed(path)
    assert client.gets(len(RESPONSE)) == RESPONSE
    carries(client, server)


def test_a_later_toxic_begins_the_one_before_it_anew(stage):
    """Added or removed: what the earlier one held passes at once, and its toxicity is rolled again."""
    stage.toxic("latency", latency=FOR_EVER_MS)
    client, server = stage.connected()
    server.sends(b"first")
    assert client.is_silent()
    later = stage.toxic("noop")
    assert client.gets(5) == b"first"
    server.sends(b"second")
    assert client.is_silent()
    stage.removed(later)
    assert client.gets(6) == b"second"


def test_latency_concerns_one_direction(stage):
    """Upstream is free while downstream waits."""
    stage.toxic("latency", latency=FOR_EVER_MS)
    client, server = stage.connected()
    client.sends(REQUEST)
    assert server.gets(len(REQUEST)) == REQUEST


# -- slicer


def test_slicer_keeps_bytes_and_order(stage):
    """A byte a piece, a pause between: all pieces, and not sooner than their pauses allow."""
    stage.toxic("slicer", average_size=1, delay=10_000)
    client, server = stage.connected()
    began = time.monotonic()
    server.sends(RESPONSE[:20])
    assert client.gets(20) == RESPONSE[:20]
    assert time.monotonic() - began >= 0.15


def test_slicer_without_a_pause_keeps_bytes_and_order(stage):
    """Sizes vary, the bytes do not."""
    stage.toxic("slicer", average_size=7, size_variation=3)
    client, server = stage.connected()
    server.sends(RESPONSE)
    assert client.gets(len(RESPONSE)) == RESPONSE
    carries(client, server)


# -- toxicity, order, several


@pytest.mark.parametrize("kind", ["limit_data", "timeout", "bandwidth", "reset_peer"])
def test_a_toxicity_of_0_does_nothing(stage, kind):
    """To data."""
    stage.toxic(kind, toxicity=0)
    carries(*stage.connected())


def test_noop_does_nothing(stage):
    """Also between others."""
    stage.toxic("noop")
    stage.toxic("limit_data", bytes=5)
    client, server = stage.connected()
    server.sends(RESPONSE)
    assert client.rest() == (RESPONSE[:5], "fin")


def test_toxics_work_one_after_the_other(stage):
    """Two limits: the smaller one, wherever it stands; the slicer before it changes no byte."""
    stage.toxic("slicer", average_size=3)
    stage.toxic("limit_data", bytes=50)
    stage.toxic("latency", latency=1)
    client, server = stage.connected()
    server.sends(RESPONSE)
    assert client.rest() == (RESPONSE[:50], "fin")


def test_a_removed_toxic_lets_data_go_on(stage):
    """On the same connection."""
    path = stage.toxic("limit_data", bytes=100)
    client, server = stage.connected()
    server.sends(RESPONSE[:50])
    assert client.gets(50) == RESPONSE[:50]
    stage.removed(path)
    server.sends(RESPONSE[50:])
    assert client.gets(310) == RESPONSE[50:]
    carries(client, server)


def test_connections_do_not_mix(stage):
    """Thirty at once, each with its own bytes."""
    pairs = [stage.connected() for _ in range(30)]
    for number, (here, there) in enumerate(pairs):
        here.sends(b"up %02d" % number)
        there.sends(b"down %02d" % number)
    for number, (here, there) in enumerate(pairs):
        assert there.gets(5) == b"up %02d" % number
        assert here.gets(7) == b"down %02d" % number


def test_a_reset_by_one_side_ends_the_other(stage):
    """The other side sees an end, one way or the other."""
    client, server = stage.connected()
    carries(client, server)
    client.resets()
    assert server.rest()[0] == b""
