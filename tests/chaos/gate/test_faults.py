"""What Toxiproxy cannot do: the gate's own faults, as a client on a plain socket and the server see them."""

import asyncio
import json
import time

import pytest

from gate_stage import GET, POST, body, framed, planned, stage
from reattach_chaos.history import Connect, Head, Received, Request

pytestmark = [pytest.mark.anyio]
ANSWER = framed(body())
KEPT = framed(body()[:4])


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def parts(data: bytes) -> tuple[bytes, dict[bytes, bytes], bytes]:
    """Return an answer's first line, headers and the rest."""
    head, _, rest = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    return first, {line.partition(b":")[0].lower(): line.partition(b":")[2].strip() for line in lines}, rest


def unchunked(data: bytes) -> tuple[bytes, bool]:
    """Return a chunked body and whether it ended as one."""
    whole = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        if not int(size, 16):
            return whole, data == b"\r\n"
        whole += data[: int(size, 16)]
        data = data[int(size, 16) + 2 :]
    return whole, False


@pytest.mark.parametrize("route", ["create", "stream"])
async def test_a_busy_server_answers_in_the_server_s_place(route):
    """The status, Retry-After in whole seconds rounded up, a problem; the request reaches no server; the next one does."""
    request = POST if route == "create" else GET
    fault = planned("busy", "after-request", route=route, settings={"status": 429, "retry_after_ms": 1200})
    async with stage(ANSWER, fault) as played:
        first, headers, rest = parts((await played.ask(request, silent=True)).data)
        assert first == b"HTTP/1.1 429 Too Many Requests"
        assert headers[b"retry-after"] == b"2"
        assert json.loads(rest)["code"] == "overloaded"
        assert played.server.requests == []
        assert (await played.ask(request, silent=True)).data == ANSWER
    assert next((record.status, record.retry_after_ms) for record in played.of(Head)) == (429, 2000)


async def test_a_busy_server_need_not_say_when():
    """Without the setting there is no Retry-After."""
    async with stage(ANSWER, planned("busy", "after-request", settings={"status": 503})) as played:
        first, headers, _ = parts((await played.ask(silent=True)).data)
        assert first == b"HTTP/1.1 503 Service Unavailable"
        assert b"retry-after" not in headers


async def test_an_answer_in_the_server_s_place_leaves_the_connection_usable():
    """A client that keeps its connection asks again on it, and gets the server's answer."""
    async with stage(ANSWER, planned("unauthorized", "after-request")) as played:
        data = (await played.ask(GET + GET, silent=True)).data
        first, headers, rest = parts(data)
        assert first == b"HTTP/1.1 401 Unauthorized"
        assert headers[b"www-authenticate"] == b"Bearer"
        assert rest[int(headers[b"content-length"]) :] == ANSWER


async def test_an_empty_stream_is_a_200_and_nothing():
    """Media type of an event stream, length 0."""
    async with stage(ANSWER, planned("empty", "after-request")) as played:
        first, headers, rest = parts((await played.ask(silent=True)).data)
        assert (first, rest) == (b"HTTP/1.1 200 OK", b"")
        assert headers[b"content-type"] == b"text/event-stream"


async def test_a_web_page_comes_instead():
    """As from a login or a proxy: 200, text/html."""
    async with stage(ANSWER, planned("wrong-type", "after-request")) as played:
        first, headers, rest = parts((await played.ask(silent=True)).data)
        assert first == b"HTTP/1.1 200 OK"
        assert headers[b"content-type"].startswith(b"text/html")
        assert b"<title>" in rest


async def test_accepted_then_closed():
    """No byte for the client, none for the server."""
    async with stage(ANSWER, planned("accept-close", "connecting")) as played:
        heard = await played.ask()
        assert (heard.data, heard.how) == (b"", "fin")
        assert played.server.requests == []


async def test_refused_for_a_while_and_then_served():
    """The attempt is reset, the next ones find no port, then there is one again."""
    async with stage(ANSWER, planned("refuse", "connecting", times=2), closes=True) as played:
        assert (await played.ask()).how == "rst"
        with pytest.raises(ConnectionRefusedError):
            await played.ask()
        async with asyncio.timeout(10):
            while True:
                try:
                    heard = await played.ask()
                    break
                except ConnectionRefusedError:
                    await asyncio.sleep(0.01)
        # The second of the two attempts was used up by the closed port, if it was counted at all.
        assert heard.data in (ANSWER, b"")


@pytest.mark.parametrize("framing", ["chunked", "sized", "until-close"])
async def test_a_clean_early_end_is_a_whole_body_without_the_terminal_event(framing):
    """Nobody can see from the framing that something is missing."""
    answer = framed(body(), framing)
    async with stage(answer, planned("early-end", "after-event", 2), closes=framing == "until-close") as played:
        heard = await played.ask()
        _, headers, rest = parts(heard.data)
        assert heard.how == "fin"
        whole, ended = (rest, True) if framing == "until-close" else unchunked(rest)
        assert (whole, ended) == (b"".join(body()[:3]), True)
        assert b"content-length" not in headers


@pytest.mark.parametrize("framing", ["chunked", "sized", "until-close"])
async def test_a_span_comes_twice_and_the_stream_goes_on(framing):
    """The last two events again, byte for byte, then the rest."""
    pieces = body()
    answer = framed(pieces, framing)
    async with stage(answer, planned("duplicate", "after-event", 2, settings={"events": 2}), closes=True) as played:
        _, _, rest = parts((await played.ask()).data)
        whole = rest if framing == "until-close" else unchunked(rest)[0]
        assert whole == b"".join(pieces[:3] + pieces[1:3] + pieces[3:])
    assert [record.sequence for record in played.of(Received)] == [1, 2, 1, 2, 3, 4]


@pytest.mark.parametrize("place", ["after-event", "in-chunk-size"])
async def test_a_broken_chunk_size_ends_the_connection(place):
    """Letters where a size is expected, then FIN."""
    async with stage(ANSWER, planned("broken-chunk", place, 2)) as played:
        heard = await played.ask()
        assert heard.data.endswith(b"\r\nzz\r\n")
        assert heard.how == "fin"


async def test_a_sized_answer_has_no_chunk_to_break_until_it_is_framed_anew():
    """It becomes a chunked one; one that lasts until the end has none, and the fault is missed."""
    answer = framed(body(), "until-close")
    async with stage(answer, planned("broken-chunk", "after-event", 2), closes=True) as played:
        assert (await played.ask()).data == answer
    assert [record.reason for record in played.missed] == ["the answer is not chunked"]


async def test_a_request_is_led_to_another_instance():
    """The second stream goes to the second server, the third to the first again."""
    async with stage(framed([b"one"]), closes=True) as one, stage(framed([b"two"]), closes=True) as two:
        host, _, port = two.gate.url.removeprefix("http://").partition(":")
        fault = planned("other-instance", "connecting", nth=2)
        async with stage(framed([b"three"]), fault, closes=True, others=[(host, int(port))]) as played:
            heard = [(await played.ask()).data for _ in range(3)]
        assert [b"two" in each for each in heard] == [False, True, False]
        assert one.server.requests == []


async def test_without_a_second_instance_the_fault_is_missed():
    """A case that cannot be played is inconclusive, not green."""
    async with stage(ANSWER, planned("other-instance", "connecting"), closes=True) as played:
        assert (await played.ask()).data == ANSWER
    assert [record.reason for record in played.missed] == ["there is only one instance of the server"]


async def test_a_trickle_sends_a_byte_at_a_time():
    """All bytes come, in small reads."""
    async with stage(KEPT, planned("trickle", "connecting", settings={"bytes": 1}), closes=True) as played:
        assert (await played.ask()).data == KEPT


@pytest.mark.parametrize(("fault", "settings"), [
    ("latency", {"delay_ms": 80}), ("bandwidth", {"kb_per_s": 4}), ("slow-reader", {"delay_ms": 80}),
])  # fmt: skip
async def test_a_brake_lets_every_byte_pass_later(fault, settings):
    """At least so late as asked for; not a byte is changed."""
    async with stage(KEPT, planned(fault, "connecting", settings=settings), closes=True) as played:
        start = time.monotonic()
        assert (await played.ask()).data == KEPT
        assert time.monotonic() - start >= 0.07


async def test_a_brake_is_over_with_its_request():
    """The next request on the same connection is at full speed."""
    async with stage(KEPT, planned("latency", "connecting", settings={"delay_ms": 50}), closes=False) as played:
        assert (await played.ask(GET + GET, silent=True)).data == KEPT + KEPT
        assert played.gate.fired[1] == 1


async def test_what_is_the_runner_s_is_done_by_the_runner_while_the_gate_holds():
    """At the place nothing more has passed; afterwards the stream goes on."""
    seen: list[int] = []

    async def perform(fault, exchange) -> None:
        await asyncio.sleep(0)
        seen.append(len(played.of(Received)))

    async with stage(ANSWER, planned("expire", "after-event", 2), closes=True, perform=perform) as played:
        assert (await played.ask()).data == ANSWER
    assert seen == [2]
    assert [record.fault for record in played.fired] == ["expire"]


async def test_a_server_that_was_restarted_ends_its_connections():
    """What it had sent before is with it; while it is away a connection is turned off, and its request is not counted."""

    async def perform(fault, exchange) -> None:
        played.gate.away(True)

    async with stage(ANSWER, planned("server-restart", "after-event", 2), closes=True, perform=perform) as played:
        heard = await played.ask()
        assert heard.data == ANSWER[: ANSWER.index(b"\n\n", ANSWER.index(b"e1.2")) + 2]
        assert (await played.ask()).data == b""
        played.gate.away(False)
        assert (await played.ask()).data == ANSWER
    assert [record.ok for record in played.of(Connect)] == [True, False, True]
    assert [record.nth for record in played.of(Request)] == [1, 2]
    assert played.gate.troubles == []


async def test_without_a_runner_its_faults_are_missed():
    """Nobody restarts the server."""
    async with stage(ANSWER, planned("server-restart", "after-event", 2), closes=True) as played:
        assert (await played.ask()).data == ANSWER
    assert [record.reason for record in played.missed] == ["nobody is there who does it"]
