"""Closing, cancelling, and nothing left behind: the descriptors are counted (encode/httpcore#1093, encode/httpx#3782)."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import httpx
import pytest

from client.transports.conftest import descriptors
from client.transports.origin import CHUNKED, LAST_CHUNK, UNTIL_CLOSE, Answer, Origin, chunk, event, sending, until_gone
from reattach.transports import http
from reattach.transports.base import Request, Stream, Wire, WireLost
from reattach.transports.http import HttpWire

pytestmark = pytest.mark.anyio

LIMIT = 1 << 20
ROUNDS = 60
PEM = Path(__file__).with_name("loopback.pem")

Settles = Callable[[int], Awaitable[int]]


def get(url: str, timeout: float = 10.0) -> Request:
    return Request("GET", url, {}, None, timeout)


def serving_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    return context


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=PEM)


# --------------------------------------------------------------------------------------------------------------- aclose


async def test_closing_wakes_a_reader(wire: Wire) -> None:
    """A read that waits ends at once with the loss when another task closes; so does any later one."""
    lost: list[WireLost] = []
    with Origin(until_gone(CHUNKED + chunk(event(1)))) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        assert await stream.read() is not None

        async def read() -> None:
            with pytest.raises(WireLost) as caught:
                await stream.read()
            lost.append(caught.value)

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                await stream.aclose()
        with pytest.raises(WireLost):
            await stream.read()
    assert len(lost) == 1


@pytest.mark.parametrize(
    "parts", [(CHUNKED,), (CHUNKED, chunk(event(1)) * 3), (CHUNKED, chunk(event(1)), LAST_CHUNK), (UNTIL_CLOSE,)]
)
@pytest.mark.parametrize("reads", [0, 1])
async def test_a_stream_can_be_closed_in_any_state_and_twice(
    wire: Wire, parts: tuple[bytes, ...], reads: int, settles: Settles
) -> None:
    """Unread, half read, read to its end: the socket is closed, the server sees it, and nothing is raised."""
    before = descriptors()
    with Origin(until_gone(*parts)) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        for _ in range(reads):
            with anyio.move_on_after(0.1):
                await stream.read()
        with anyio.fail_after(5):
            await stream.aclose()
            await stream.aclose()
    assert await settles(before) <= before


async def test_closing_does_not_wait_for_a_server_that_does_not_read(wire: Wire, settles: Settles) -> None:
    """A request body that nobody takes is given up with the connection."""
    before = descriptors()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        request = Request("POST", f"http://127.0.0.1:{listener.getsockname()[1]}/", {}, b"x" * (32 << 20), 0.2)
        with anyio.fail_after(10), pytest.raises(WireLost) as caught:
            await wire.stream(request, max_event_bytes=LIMIT)
        assert not caught.value.definite
    assert await settles(before) <= before


async def test_an_interrupted_read_is_no_clean_end(wire: Wire) -> None:
    """After a cancelled read the connection is spent: reading on is a loss, never the end of the body."""
    with Origin(until_gone(CHUNKED + chunk(event(1)))) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        assert await stream.read() is not None
        with anyio.move_on_after(0.05) as scope:
            await stream.read()
        assert scope.cancelled_caught
        with pytest.raises(WireLost):
            await stream.read()
        await stream.aclose()


async def test_closing_in_a_cancelled_task_closes(wire: Wire, settles: Settles) -> None:
    """The usual way: the reader is cancelled, and `aclose` runs in its `finally`, itself cancelled."""
    before = descriptors()
    with Origin(until_gone(CHUNKED + chunk(event(1)))) as origin:
        for _ in range(ROUNDS):
            with anyio.CancelScope() as scope:
                stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
                try:
                    await stream.read()
                    scope.cancel()
                    await stream.read()
                finally:
                    await stream.aclose()
        assert origin.connections == ROUNDS
    assert await settles(before) <= before


async def test_closing_the_wire_closes_what_is_open(settles: Settles) -> None:
    """Nothing outlives the wire, not even a stream that somebody forgot; twice is once."""
    before = descriptors()
    wire = HttpWire()
    with Origin(until_gone(CHUNKED)) as origin:
        streams = [await wire.stream(get(origin.url), max_event_bytes=LIMIT) for _ in range(5)]
        await wire.aclose()
        await wire.aclose()
        for stream in streams:
            with anyio.fail_after(5), pytest.raises(WireLost):
                await stream.read()
            await stream.aclose()
    assert await settles(before) <= before


async def test_half_read_streams_leave_nothing_to_the_event_loop(wire: Wire) -> None:
    """The generators that the library reads through are finished by `aclose`, not at some later time with a warning."""
    with Origin(until_gone(CHUNKED + chunk(event(1)))) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        assert await stream.read() is not None
        await stream.aclose()
        del stream
        gc.collect()
        await anyio.wait_all_tasks_blocked()


# --------------------------------------------------------------------------------------------------------- cancellation


async def follow(wire: Wire, url: str) -> None:
    """What a client does with a stream, until it is cancelled."""
    stream: Stream = await wire.stream(get(url), max_event_bytes=LIMIT)
    try:
        while await stream.read() is not None:
            pass
    finally:
        await stream.aclose()


async def ask(wire: Wire, url: str) -> None:
    while True:
        await wire.call(get(url))


SERVERS: dict[str, Answer | None] = {
    "says nothing": None,
    "has a head": until_gone(CHUNKED),
    "sends events": until_gone(CHUNKED + chunk(event(1)) * 20),
    "answers": sending(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
}


@pytest.mark.parametrize("doing", [follow, ask])
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two_cancellations_leak_nothing(
    wire: Wire, server: str, doing: Callable[[Wire, str], Awaitable[None]], settles: Settles
) -> None:
    """B37: cancelled at any turn of the loop and once more 0 to 3 turns later: no descriptor stays, the next request works."""
    before = descriptors()
    with Origin(SERVERS[server]) as origin:
        for number in range(ROUNDS):
            task = asyncio.ensure_future(doing(wire, origin.url))
            if number % 3 == 2:
                await anyio.sleep(0.002)
            for _ in range(number):
                await asyncio.sleep(0)
            task.cancel()
            for _ in range(number % 4):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task], timeout=10)
            assert task.done()
    assert await settles(before) <= before
    gc.collect()  # a transport that was forgotten open would warn here, which is an error
    with Origin(SERVERS["answers"]) as origin:
        assert (await wire.call(get(origin.url))).body == b"ok"


@pytest.mark.parametrize("doing", [follow, ask])
@pytest.mark.parametrize("server", SERVERS)
async def test_scopes_that_end_leak_nothing(
    wire: Wire, server: str, doing: Callable[[Wire, str], Awaitable[None]], settles: Settles
) -> None:
    """An outer time limit and the cancellation of the group around it, on both loops."""
    before = descriptors()
    with Origin(SERVERS[server]) as origin:
        for number in range(ROUNDS):
            async with anyio.create_task_group() as tasks:

                async def limited(after: float) -> None:
                    with anyio.move_on_after(after):
                        await doing(wire, origin.url)

                tasks.start_soon(limited, number * 0.0003)
                for _ in range(number):
                    await anyio.lowlevel.checkpoint()
                if number % 2:
                    tasks.cancel_scope.cancel()
    assert await settles(before) <= before


async def test_churn_leaves_the_next_request_working(wire: Wire, settles: Settles) -> None:
    """B36: twenty workers, each cancelled within milliseconds, again and again: nothing is used up."""
    before = descriptors()
    with Origin(until_gone(CHUNKED + chunk(event(1)))) as origin:

        async def worker(number: int) -> None:
            for turn in range(10):
                with anyio.move_on_after(((number * 7 + turn) % 11) / 1000):
                    await follow(wire, origin.url)

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(worker, number)
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        assert await stream.read() is not None
        await stream.aclose()
    assert await settles(before) <= before


# ------------------------------------------------------------------------------------------------------------------ TLS


async def test_a_stream_over_tls(settles: Settles) -> None:
    """The caller's context is used, chunks are coalesced inside TLS too, and closing closes the socket under it."""
    before = descriptors()
    wire = HttpWire(ssl_context=trusting())
    with Origin(until_gone(CHUNKED + chunk(event(1)) + chunk(event(2))), tls=serving_tls()) as origin:
        stream = await wire.stream(get(origin.url), max_event_bytes=LIMIT)
        with anyio.fail_after(10):
            batch = await stream.read()
        assert batch is not None
        assert [frame.id for frame in batch.frames] == ["1", "2"]
        await stream.aclose()
    assert await settles(before) <= before


async def test_an_untrusted_certificate_is_a_definite_loss(wire: Wire) -> None:
    """Nothing was sent to whoever that is."""
    with (
        Origin(sending(UNTIL_CLOSE), tls=serving_tls()) as origin,
        anyio.fail_after(10),
        pytest.raises(WireLost) as caught,
    ):
        await wire.stream(get(origin.url), max_event_bytes=LIMIT)
    assert caught.value.definite
    assert "CERTIFICATE_VERIFY_FAILED" in caught.value.detail


async def test_a_handshake_without_an_answer_is_definite_and_leaks_nothing(settles: Settles) -> None:
    """The time is up before the request could leave; cancelling twice in the handshake leaves nothing either."""
    before = descriptors()
    wire = HttpWire(ssl_context=trusting())
    with Origin(None) as origin:
        url = f"https://127.0.0.1:{origin.port}/"
        with anyio.fail_after(10), pytest.raises(WireLost) as caught:
            await wire.stream(get(url, timeout=0.2), max_event_bytes=LIMIT)
        assert caught.value.definite
        for number in range(ROUNDS):
            with anyio.move_on_after(number * 0.0003):
                await wire.stream(get(url), max_event_bytes=LIMIT)
    assert await settles(before) <= before


async def test_one_tls_context_serves_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading the certificates costs 20 ms: once, at the first https URL, and never for http."""
    made: list[ssl.SSLContext] = []

    def make() -> ssl.SSLContext:
        made.append(trusting())
        return made[-1]

    monkeypatch.setattr(httpx, "create_ssl_context", make)
    http.shared_ssl_context.cache_clear()
    try:
        with Origin(sending(UNTIL_CLOSE)) as origin:
            await (await HttpWire().stream(get(origin.url), max_event_bytes=LIMIT)).aclose()
        assert not made
        with Origin(sending(UNTIL_CLOSE), tls=serving_tls()) as origin:
            for _ in range(3):
                await (await HttpWire().stream(get(origin.url), max_event_bytes=LIMIT)).aclose()
        assert len(made) == 1
    finally:
        http.shared_ssl_context.cache_clear()
