"""A tunnel through an HTTP proxy: CONNECT, and then the bytes are the origin's.

For what a forwarding proxy would not pass on as it is: an upgrade on a plain http address (RFC 6455, 4.1 asks for CONNECT). Tunnels
for https are httpcore's own affair.

Checked by tests/client/transports/test_websocket.py.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterable

import httpcore
import httpx

from reattach.transports.link import Link

LONGEST_ANSWER = 65_536  # bytes of a head


class TunnelLink(Link):
    """The network backend of one attempt: what connects is connected through the proxy.

    Args:
        proxy: Its address, with a user and a password if it wants them.
        ssl_context: For a proxy that is itself reached by https.
    """

    def __init__(self, proxy: httpx.Proxy, ssl_context: ssl.SSLContext | None) -> None:
        super().__init__(coalesce=False)
        self._proxy = proxy
        self._ssl_context = ssl_context

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the proxy and let it connect to the host.

        Raises:
            httpcore.ProxyError: It did not.
        """
        url = self._proxy.url
        at = url.port or (443 if url.scheme == "https" else 80)
        stream = await super().connect_tcp(url.host, at, timeout, local_address, socket_options)
        if self._ssl_context is not None:
            stream = await stream.start_tls(self._ssl_context, url.host, timeout)
        await stream.write(self._connect(host, port), timeout)
        head = b""
        while b"\r\n\r\n" not in head:
            data = await stream.read(LONGEST_ANSWER, timeout)
            head += data
            if not data or len(head) > LONGEST_ANSWER:
                raise httpcore.ProxyError("the proxy gave no answer to CONNECT")
        first = head.partition(b"\r\n")[0].decode("latin-1").split(" ", 1)
        if len(first) < 2 or not first[0].startswith("HTTP/") or not first[1].startswith("2"):
            raise httpcore.ProxyError(" ".join(first[1:]) or "the proxy's answer to CONNECT is not HTTP")
        if not head.endswith(b"\r\n\r\n"):
            raise httpcore.ProxyError("the proxy spoke before the server could")
        return stream

    def _connect(self, host: str, port: int) -> bytes:
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if self._proxy.raw_auth is not None:
            word = base64.b64encode(b":".join(self._proxy.raw_auth)).decode()
            lines.append(f"Proxy-Authorization: Basic {word}")
        more = [f"{name.decode('latin-1')}: {value.decode('latin-1')}" for name, value in self._proxy.headers.raw]
        return "".join(f"{line}\r\n" for line in [*lines, *more, ""]).encode("latin-1")
