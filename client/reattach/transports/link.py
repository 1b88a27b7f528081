"""A link: one attempt's way to the network, which can be cut at once and whatever happens.

httpcore asks a network backend for streams; ours are the stock ones, each wrapped so that (1) chunked bodies are coalesced and
(2) the newest stream of the attempt is known and can be closed even if every clean-up above it was interrupted by a second
cancellation (encode/httpx#3782 leaks a connection that way, encode/httpcore#1093 a pool slot). No HTTP, no retry here.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import anyio
import httpcore

from reattach.transports.coalesce import Coalescer
from reattach.transports.failures import PEER


class LinkStream(httpcore.AsyncNetworkStream):
    """One connected stream, read through a coalescer if there is one."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, link: Link, coalescer: Coalescer | None) -> None:
        self._stream = stream
        self._link = link
        self._coalescer = coalescer
        self._closed = False
        self._ended = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what came, b"" at the end. After `aclose` it fails at once, whatever may still be buffered."""
        while True:
            if self._closed:
                raise httpcore.ReadError("closed by us")
            if self._ended:
                return b""
            data = await self._stream.read(max_bytes, timeout)
            if self._coalescer is None:
                return data
            if data:
                data = self._coalescer.feed(data)
            else:
                self._ended = True
                data = self._coalescer.rest()
            if data:
                return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the socket, before the first moment at which a cancellation could come between."""
        self._closed = True
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Return the stream inside TLS; it is the link's stream from then on."""
        return self._link.joined(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return what the stock stream knows."""
        return self._stream.get_extra_info(info)


class Link(httpcore.AsyncNetworkBackend):
    """The network backend of one attempt.

    Args:
        coalesce: Off where bytes of others come first on the connection (a proxy's answer to CONNECT).
    """

    def __init__(self, *, coalesce: bool) -> None:
        self._backend = httpcore.AnyIOBackend()  # runs on trio too
        self._coalesce = coalesce
        self._newest: LinkStream | None = None

    def joined(self, stream: httpcore.AsyncNetworkStream) -> LinkStream:
        """Take the stream as the newest of the attempt; closing it closes those that it lies upon."""
        self._newest = LinkStream(stream, self, Coalescer() if self._coalesce else None)
        return self._newest

    async def hang_up(self) -> None:
        """Close the attempt's socket at once, without waiting for the other side; may be repeated."""
        if self._newest is not None:
            with anyio.CancelScope(shield=True):
                await self._newest.aclose()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect, as the stock backend does; who is not reached is named in the failure."""
        try:
            stream = await self._backend.connect_tcp(host, port, timeout, local_address, socket_options)
        except Exception as error:
            error.__dict__[PEER] = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            raise
        return self.joined(stream)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Connect, as the stock backend does."""
        return self.joined(await self._backend.connect_unix_socket(path, timeout, socket_options))

    async def sleep(self, seconds: float) -> None:
        """Wait, as the stock backend does (it is asked to only by httpcore's own retries, which are off)."""
        await self._backend.sleep(seconds)
