"""Which proxy a URL goes through, compared with httpx's own choice, and requests that really go through one."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from client.transports.origin import CHUNKED, LAST_CHUNK, Origin, chunk, event, sending
from reattach.transports.base import Request, WireLost, WireRefused
from reattach.transports.http import HttpWire
from reattach.transports.proxies import Routes

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
PROXIES = ["http://one:1", "two:2", "http://me:pw@three:3"]
EXCEPTIONS = [
    "*", "localhost", "LOCALHOST", "127.0.0.1", "127.0.0.1:80", "::1", "192.168.0.0/16",
    ".example.com", "example.com", "www.example.com",
    "http://example.com", "https://", "http://", "all://example.com:8080", "com", "*.example.com", "",
]  # fmt: skip
URLS = [
    "http://127.0.0.1/", "http://127.0.0.1:8000/", "http://localhost:5/", "https://localhost/", "http://[::1]:8/", "https://example.com/",
    "http://www.example.com:8080/", "http://example.com:8080/", "https://wwwexample.com/", "http://192.168.0.0/", "http://192.168.1.1/",
    "https://a.b.example.com/x",
]  # fmt: skip


def httpx_choice(url: httpx.URL) -> str | None:
    """What httpx would do, from its client's own (private) choice of a transport: there is no public question."""
    client = httpx.AsyncClient(trust_env=True, verify=False)  # nothing is sent
    transport = client._transport_for_url(url)
    proxy = getattr(transport._pool, "_proxy_url", None)  # type: ignore[attr-defined]  # httpx's privates are the oracle
    return None if proxy is None else f"{proxy.host.decode()}:{proxy.port}"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    proxies=st.tuples(*[st.sampled_from([None, "", *PROXIES])] * 3),
    exceptions=st.lists(st.sampled_from(EXCEPTIONS), max_size=3).map(", ".join),
)
def test_the_environment_is_read_as_httpx_reads_it(proxies: tuple[str | None, ...], exceptions: str) -> None:
    """For any of the four variables and any URL the choice is httpx's."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in zip(VARIABLES, (*proxies, exceptions), strict=True):
            if value is not None:
                environment.setenv(name, value)
        routes = Routes()
        for url in map(httpx.URL, URLS):
            ours = routes.proxy(url)
            chosen = None if ours is None else httpx.URL(ours)
            assert (None if chosen is None else f"{chosen.host}:{chosen.port}") == httpx_choice(url), url


def test_a_given_proxy_is_for_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument overrides the environment, its exceptions too."""
    monkeypatch.setenv("no_proxy", "*")
    assert Routes("http://mine:1").proxy(httpx.URL("http://localhost/")) == "http://mine:1"


def test_the_environment_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without trust in it, no variable counts."""
    monkeypatch.setenv("http_proxy", "http://one:1")
    assert Routes(environment=False).proxy(httpx.URL("http://example.com/")) is None


def test_a_proxy_that_is_none_is_told_when_the_wire_is_made() -> None:
    """A mistake in an argument is not left to the first request."""
    with pytest.raises(ValueError, match="ftp"):
        HttpWire(proxy="ftp://x")


@pytest.mark.anyio
async def test_a_stream_through_a_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy gets the whole URL and its own credentials; events come as without it, and what NO_PROXY names goes directly."""
    with Origin(sending(CHUNKED, chunk(event(1)), chunk(event(2)), LAST_CHUNK)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:pw@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "localhost")
        wire = HttpWire()
        stream = await wire.stream(Request("GET", "http://example.invalid/x", {}), max_event_bytes=1000)
        ids = []
        while (batch := await stream.read()) is not None:
            ids += [frame.id for frame in batch.frames]
        await stream.aclose()
        assert ids == ["1", "2"]
        assert (await wire.call(Request("GET", f"http://localhost:{proxy.port}/y", {}))).status == 200
        assert (await HttpWire(trust_env=False).call(Request("GET", proxy.url + "/z", {}))).status == 200
    through, direct, untrusting = proxy.requests
    assert through.startswith(b"GET http://example.invalid/x HTTP/1.1\r\n")
    assert b"\r\nProxy-Authorization: Basic bWU6cHc=\r\n" in through
    assert direct.startswith(b"GET /y HTTP/1.1\r\n")
    assert untrusting.startswith(b"GET /z HTTP/1.1\r\n")


@pytest.mark.anyio
async def test_a_half_read_stream_through_a_proxy_closes() -> None:
    """Closing works through the library's pool as it does without."""
    with Origin(sending(CHUNKED, chunk(event(1)) * 50)) as proxy:
        stream = await HttpWire(proxy=proxy.url).stream(
            Request("GET", "http://example.invalid/", {}), max_event_bytes=1000
        )
        assert await stream.read() is not None
        await stream.aclose()


@pytest.mark.anyio
async def test_a_tunnel_that_the_proxy_refuses_is_definite() -> None:
    """The request itself never left; the refusal's status is in the text."""
    answer = sending(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
    with Origin(answer) as proxy, pytest.raises(WireLost, match="407") as caught:
        await HttpWire(proxy=proxy.url).call(Request("POST", "https://example.invalid/", {}, b"{}"))
    assert caught.value.definite
    assert proxy.requests[0].startswith(b"CONNECT example.invalid:443 HTTP/1.1\r\n")


@pytest.mark.anyio
async def test_a_proxy_that_the_environment_spells_wrongly_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request goes directly because its proxy cannot be understood."""
    monkeypatch.setenv("http_proxy", "ftp://x")
    with pytest.raises(WireRefused, match="ftp"):
        await HttpWire().call(Request("GET", "http://example.invalid/", {}))
