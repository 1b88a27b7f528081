"""The wire over a caller's own client: what is the caller's stays, what is the seam's is kept, the response is always closed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest

from client.transports.origin import CHUNKED, LAST_CHUNK, Origin, chunk, event, sending
from reattach.transports.base import Request, WireLost, WireRefused
from reattach.transports.client import ClientWire

pytestmark = pytest.mark.anyio

LIMIT = 1 << 20


class Body(httpx.AsyncByteStream):
    """A body that tells whether it was closed; after its parts it waits for ever or fails."""

    def __init__(self, *parts: bytes, then: Exception | None = None, for_ever: bool = False) -> None:
        self.closed = False
        self._parts, self._then, self._for_ever = parts, then, for_ever

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part
        if self._for_ever:
            await anyio.sleep_forever()
        if self._then is not None:
            raise self._then

    async def aclose(self) -> None:
        self.closed = True


def client_with(
    body: Body, headers: dict[str, str] | None = None, **settings: Any
) -> tuple[httpx.AsyncClient, list[httpx.Request]]:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, headers={"content-type": "text/event-stream", **(headers or {})}, stream=body)

    return httpx.AsyncClient(transport=httpx.MockTransport(answer), **settings), seen


GET = Request("GET", "http://example.invalid/x", {"Accept": "text/event-stream"})


async def test_the_callers_client_is_used_as_it_is() -> None:
    """Its own headers and name are sent beside ours; its time limits are not in force, nor is its taste for codings."""
    body = Body(b"id: 1\ndata: x\n\n")
    client, seen = client_with(body, headers={}, timeout=0.5)
    client.headers["X-Team"] = "billing"
    wire = ClientWire(client)
    stream = await wire.stream(GET, max_event_bytes=LIMIT)
    batch = await stream.read()
    assert batch is not None
    assert [frame.id for frame in batch.frames] == ["1"]
    assert await stream.read() is None
    await stream.aclose()
    await stream.aclose()
    assert body.closed
    sent = seen[0]
    assert sent.headers["x-team"] == "billing"
    assert sent.headers["accept"] == "text/event-stream"
    assert sent.headers["user-agent"].startswith("python-httpx/")
    assert sent.headers.get_list("accept-encoding") == ["identity"]
    assert set(sent.extensions["timeout"].values()) == {None}


async def test_the_client_stays_the_callers() -> None:
    """Closing the wire does not close it."""
    client, _ = client_with(Body())
    await ClientWire(client).aclose()
    assert not client.is_closed


async def test_redirects_stay_unfollowed_whatever_the_client_wants() -> None:
    """`follow_redirects` of the client is not obeyed: a redirect may forward what it must not."""
    client = httpx.AsyncClient(
        transport=httpx.MockTransport(lambda request: httpx.Response(307, headers={"location": "/y"})),
        follow_redirects=True,
    )
    assert (await ClientWire(client).call(GET)).status == 307


@pytest.mark.parametrize("coding", [None, "gzip"])
async def test_a_call_closes_its_response(coding: str | None) -> None:
    """Read whole or refused for its coding, the response is closed."""
    body = Body(b"{}")
    client, _ = client_with(body, {} if coding is None else {"content-encoding": coding})
    if coding is None:
        assert (await ClientWire(client).call(GET)).body == b"{}"
    else:
        with pytest.raises(WireLost):
            await ClientWire(client).call(GET)
    assert body.closed


async def test_a_call_that_takes_too_long_closes_its_response() -> None:
    """And it is lost without a word on whether the request left: this client tells nothing."""
    body = Body(b"{", for_ever=True)
    client, _ = client_with(body)
    with anyio.fail_after(10), pytest.raises(WireLost) as caught:
        await ClientWire(client).call(GET._replace(timeout=0.05))
    assert body.closed
    assert not caught.value.definite


async def test_a_cancelled_read_and_a_close() -> None:
    """As with a wire of our own: interrupted is not ended, and closed is closed."""
    body = Body(b"data: x\n\n", for_ever=True)
    client, _ = client_with(body)
    stream = await ClientWire(client).stream(GET, max_event_bytes=LIMIT)
    assert await stream.read() is not None
    with anyio.move_on_after(0.05):
        await stream.read()
    with pytest.raises(WireLost):
        await stream.read()
    await stream.aclose()
    assert body.closed


@pytest.mark.parametrize(
    ("failure", "definite"),
    [
        (httpx.ConnectError("no"), True),
        (httpx.ConnectTimeout("no"), True),
        (httpx.PoolTimeout("no"), True),
        (httpx.ProxyError("no"), True),
        (httpx.ReadError("no"), False),
        (httpx.WriteTimeout("no"), False),
        (httpx.RemoteProtocolError("no"), False),
        (OSError("no"), False),
    ],
)
async def test_failures_of_the_network_are_losses(failure: Exception, definite: bool) -> None:
    """Whatever class the client raises, it is a loss, definite only where no connection was there to send on."""

    def fail(request: httpx.Request) -> httpx.Response:
        raise failure

    with pytest.raises(WireLost) as caught:
        await ClientWire(httpx.AsyncClient(transport=httpx.MockTransport(fail))).call(GET)
    assert caught.value.definite is definite
    assert caught.value.__cause__ is failure


async def test_a_failure_in_the_body_is_a_loss() -> None:
    """In the middle of a stream every failure is one."""
    client, _ = client_with(Body(b"data: x\n\n", then=httpx.ReadError("reset")))
    stream = await ClientWire(client).stream(GET, max_event_bytes=LIMIT)
    assert await stream.read() is not None
    with pytest.raises(WireLost, match="reset"):
        await stream.read()
    await stream.aclose()


async def test_a_client_that_cannot_send_is_refused() -> None:
    """A closed client, or a hook that fails, is not mended by trying again."""
    client, _ = client_with(Body())
    await client.aclose()
    with pytest.raises(WireRefused, match="closed"):
        await ClientWire(client).call(GET)


async def test_any_client_of_that_shape_will_do() -> None:
    """Nothing asks for httpx's classes: a double with two methods is a client."""

    class TransportError(Exception):
        """As the continuation of httpx names it."""

    class Double:
        def build_request(self, method: str, url: str, **rest: Any) -> object:
            return (method, url)

        async def send(self, request: object, *, stream: bool, follow_redirects: bool) -> object:
            raise TransportError("cut")

    with pytest.raises(WireLost, match="cut"):
        await ClientWire(Double()).call(GET)


async def test_a_real_client_over_a_real_socket() -> None:
    """The stock transport underneath: frames, a clean end, and a definite loss told by its trace."""
    async with httpx.AsyncClient() as client:
        wire = ClientWire(client)
        with Origin(sending(CHUNKED, chunk(event(1)), chunk(event(2)), LAST_CHUNK)) as origin:
            stream = await wire.stream(Request("GET", origin.url, {}), max_event_bytes=LIMIT)
            ids = []
            while (batch := await stream.read()) is not None:
                ids += [frame.id for frame in batch.frames]
            await stream.aclose()
        assert ids == ["1", "2"]


@pytest.mark.parametrize(
    ("began", "definite"),
    [
        ([], False),
        (["connection.connect_tcp"], True),
        (["connection.connect_tcp", "http11.send_request_headers"], False),
    ],
)
async def test_the_clients_trace_tells_what_left_in_time(began: list[str], definite: bool) -> None:
    """Out of time before sending began is definite; a client that traces nothing leaves it open."""

    class Double:
        def build_request(self, method: str, url: str, *, extensions: dict[str, Any], **rest: Any) -> Any:
            return extensions["trace"]

        async def send(self, trace: Any, *, stream: bool, follow_redirects: bool) -> None:
            for name in began:
                await trace(name + ".started", {})
            await anyio.sleep_forever()

    with anyio.fail_after(10), pytest.raises(WireLost) as caught:
        await ClientWire(Double()).stream(GET._replace(timeout=0.01), max_event_bytes=LIMIT)
    assert caught.value.definite is definite


async def test_an_answer_that_was_read_before_is_read_again() -> None:
    """Doubles such as respx give whole answers; they are streams too."""
    answer = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=b"id: 1\ndata: x\n\n")
    client = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: answer))
    stream = await ClientWire(client).stream(GET, max_event_bytes=LIMIT)
    batch = await stream.read()
    assert batch is not None
    assert [frame.id for frame in batch.frames] == ["1"]
    assert await stream.read() is None
    await stream.aclose()
