"""The wire over httpx as reattach uses it by itself: a fresh connection for every request, none pooled.

httpx 0.28 loses pool slots when a reconnecting task is cancelled, and making a client for each attempt costs 20 ms for its CA
bundle. So: one client for the wire's life over a transport of our own, which makes one connection a request from httpcore's
public classes, with one TLS context for the process. A request costs a connect more than a pooled one; requests are few.
"""

from __future__ import annotations

import ssl
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import Any

import httpcore
import httpx

from reattach.transports.base import Request
from reattach.transports.client import ClientWire
from reattach.transports.link import Link
from reattach.transports.proxies import Routes
from reattach.transports.stream import HANG_UP
from reattach.transports.tunnel import TunnelLink


@cache
def shared_ssl_context() -> ssl.SSLContext:
    """Return the process's TLS context: httpx's default, made when the first https URL is asked for."""
    return httpx.create_ssl_context()


@cache
def user_agent() -> bytes:
    """Return this package's name and version as the header says it."""
    return f"reattach/{version('reattach')}".encode()


class _Content:
    """A request's body, once, without a generator: one that a cancelled send left suspended is finished by the event loop later."""

    def __init__(self, content: bytes) -> None:
        self._rest = [content] if content else []

    def __aiter__(self) -> _Content:
        return self

    async def __anext__(self) -> bytes:
        if not self._rest:
            raise StopAsyncIteration
        return self._rest.pop()


class _Body(httpx.AsyncByteStream):
    """A response's body: httpcore's, with a close that needs nothing of what may have been interrupted."""

    def __init__(self, stream: Any, link: Link) -> None:
        self._stream = stream
        self._link = link

    def __aiter__(self) -> Any:
        return aiter(self._stream)

    async def aclose(self) -> None:
        await self._link.hang_up()


class FreshTransport(httpx.AsyncBaseTransport):
    """An httpx transport that makes a connection for each request and closes it with the response.

    Exceptions are httpcore's as they are; `failures.told` knows them by name.

    Args:
        ssl_context: Instead of the process's shared one.
        routes: Which URLs go through which proxy.
    """

    def __init__(self, *, ssl_context: ssl.SSLContext | None, routes: Routes) -> None:
        self._ssl_context = ssl_context
        self._routes = routes
        self._links: set[Link] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it on a new connection and return when the head of the response is here."""
        url = request.url
        if url.scheme not in ("http", "https") or not url.host:
            raise httpcore.UnsupportedProtocol(f"{str(url)!r} is not an http or https URL")
        proxy = self._routes.proxy(url)
        link = self._tunnel(proxy) if url.scheme == "http" and "upgrade" in request.headers else None
        if link is not None:
            proxy = None  # from here on it is as if there were none
        else:
            link = Link(coalesce=proxy is None)
        self._links.add(link)

        async def hang_up() -> None:
            self._links.discard(link)
            await link.hang_up()

        try:
            answer = await self._connection(url, proxy, link).handle_async_request(
                httpcore.Request(
                    request.method,
                    _core_url(url),
                    headers=request.headers.raw,
                    content=_Content(await request.aread()),
                    extensions=request.extensions,
                )
            )
        except BaseException:
            await hang_up()
            raise
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer.stream, link),
            extensions={**answer.extensions, HANG_UP: hang_up},
        )

    async def aclose(self) -> None:
        """Close every connection that is still open."""
        while self._links:
            await self._links.pop().hang_up()

    def _tunnel(self, proxy: str | None) -> Link | None:
        """Return the way through a proxy that would forward a request, and not the upgrade in it."""
        to = None if proxy is None else httpx.Proxy(proxy)
        if to is None or to.url.scheme not in ("http", "https"):
            return None
        return TunnelLink(to, (self._ssl_context or shared_ssl_context()) if to.url.scheme == "https" else None)

    def _connection(self, url: httpx.URL, proxy: str | None, link: Link) -> Any:
        """Return what sends one request: a bare connection, or httpcore's pool where a proxy has to be spoken to."""
        context = (self._ssl_context or shared_ssl_context()) if url.scheme == "https" else None
        if proxy is None:
            return httpcore.AsyncHTTPConnection(_core_url(url).origin, ssl_context=context, network_backend=link)
        to = httpx.Proxy(proxy)
        return httpcore.AsyncConnectionPool(
            ssl_context=context,
            proxy=httpcore.Proxy(
                _core_url(to.url),
                auth=to.raw_auth,
                headers=to.headers.raw,
                ssl_context=(self._ssl_context or shared_ssl_context()) if to.url.scheme == "https" else None,
            ),
            max_connections=1,
            network_backend=link,
        )


class HttpWire(ClientWire):
    """The seam's `Wire` over httpx.

    Args:
        ssl_context: For https URLs and proxies; by default one for the whole process, as httpx makes it.
        proxy: A proxy's URL for every request; by default the environment's variables decide, as with httpx.
        trust_env: Whether to look at those variables.

    Raises:
        ValueError: `proxy` is not the URL of a proxy.
    """

    def __init__(
        self, *, ssl_context: ssl.SSLContext | None = None, proxy: str | None = None, trust_env: bool = True
    ) -> None:
        if proxy is not None:
            httpx.Proxy(proxy)  # raises now what would else fail at each attempt
        transport = FreshTransport(ssl_context=ssl_context, routes=Routes(proxy, environment=trust_env))
        # Cookies of one answer do not become a part of the next request.
        jar = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        client = httpx.AsyncClient(transport=transport, trust_env=False, cookies=jar)
        for name in ("accept", "accept-encoding", "connection", "user-agent"):
            del client.headers[name]
        super().__init__(client)

    def headers(self, request: Request) -> dict[bytes, bytes]:
        """Return all that is sent but for the host and the length of the body."""
        headers = super().headers(request)
        headers.setdefault(b"user-agent", user_agent())
        return headers

    async def aclose(self) -> None:
        """Close every connection; the wire cannot be used again."""
        await self._client.aclose()


def _core_url(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
