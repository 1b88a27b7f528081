"""A proxy: a listening port, an upstream, its toxics and the connections through it.

`enabled: false` is Toxiproxy's `down`: the port is closed and kept, the connections are closed. Toxics stay over that, and over a
change of address. Settings of a toxic live in one place (`Fitted`) that all links share; a change tells each link to begin it anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from dataclasses import replace
from random import Random
from typing import Any

from reattach_chaos.toxiproxy.embedded import address
from reattach_chaos.toxiproxy.embedded.connection import Connection, of_stream
from reattach_chaos.toxiproxy.embedded.end import End
from reattach_chaos.toxiproxy.embedded.errors import ApiError, toxic_not_found
from reattach_chaos.toxiproxy.embedded.stage import Fitted

_RESOLVE_S = 5.0
_CLOSE_S = 5.0  # the sockets are closed in the next turn of the loop; this is for what should not happen


class Proxy:
    """One proxy of a server.

    Args:
        name: Its name, fixed.
        listen: Where to listen; port 0 is replaced by the one that was free. Nothing given is a free port of loopback (Toxiproxy
            would open it on all interfaces; `:0` still does).
        upstream: Where connections go; not checked, as Toxiproxy does not.
        chance: Rolls toxicity and sizes.
    """

    def __init__(self, name: str, listen: str, upstream: str, chance: Random) -> None:
        self.name = name
        self.listen = listen or address.LOOPBACK
        self.upstream = upstream
        self.toxics: list[Fitted] = []
        self._chance = chance
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()

    @property
    def enabled(self) -> bool:
        """Whether it listens."""
        return self._server is not None

    def view(self) -> dict[str, Any]:
        """Return what the API shows."""
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.enabled,
            "Logger": {},
            "toxics": [toxic_view(each) for each in self.in_order()],
        }

    def in_order(self) -> list[Fitted]:
        """Return the toxics as they are listed: upstream, then downstream."""
        return of_stream(self.toxics, "upstream") + of_stream(self.toxics, "downstream")

    async def start(self) -> None:
        """Listen.

        Raises:
            ApiError: 500: the address cannot be listened on. The proxy is then disabled.
        """
        if self._server is not None:
            return
        loop = asyncio.get_running_loop()
        try:
            host, port = address.split(self.listen)
            family, shown = await _resolved(host, port)
            sock = address.listener(shown, port, family)
        except ValueError as error:
            raise ApiError(500, f"listen tcp: {error}") from error
        except OSError as error:
            # The socket module's own text repeats the address.
            why = os.strerror(error.errno).lower() if error.errno else str(error)
            raise ApiError(500, f"listen tcp {self.listen}: bind: {why}") from error
        self._server = await loop.create_server(self._accept, sock=sock)
        self.listen = address.join(shown or sock.getsockname()[0], sock.getsockname()[1])

    def _accept(self) -> End:
        try:
            upstream = address.split(self.upstream)
        except ValueError:
            upstream = None
        connection = Connection(upstream, self.toxics, self._chance, self._connections.discard)
        self._connections.add(connection)
        return connection.client

    async def stop(self) -> None:
        """Close the port and every connection, at once."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        connections = list(self._connections)
        for connection in connections:
            connection.abort()
        for connection in connections:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await connection.closed.wait()

    async def update(self, listen: str, upstream: str, enabled: bool) -> None:
        """Move it where it changed, which drops the connections and keeps the toxics; then enable or disable it.

        Raises:
            ApiError: 500: the new address cannot be listened on. It is kept, and the proxy is disabled.
        """
        listen = listen or address.LOOPBACK
        if (listen, upstream) != (self.listen, self.upstream):
            await self.stop()
            self.listen, self.upstream = listen, upstream
        if enabled:
            await self.start()
        else:
            await self.stop()

    # -- toxics

    def find(self, name: str) -> Fitted:
        """Return a toxic.

        Raises:
            ApiError: 404.
        """
        for each in self.toxics:
            if each.name == name:
                return each
        raise toxic_not_found()

    def add(self, fitted: Fitted) -> None:
        """Add a toxic, also to live connections.

        Raises:
            ApiError: 409: another has the name, in either direction.
        """
        if any(each.name == fitted.name for each in self.toxics):
            raise ApiError(409, "toxic already exists")
        self.toxics.append(fitted)
        for connection in list(self._connections):
            if (link := connection.link(fitted.stream)) is not None:
                link.add(fitted)

    def change(self, fitted: Fitted, changed: Fitted) -> None:
        """Give a toxic other settings, also on live connections."""
        fitted.toxic, fitted.toxicity = replace(changed.toxic), changed.toxicity
        for connection in list(self._connections):
            if (link := connection.link(fitted.stream)) is not None:
                link.change(fitted)

    def remove(self, fitted: Fitted) -> None:
        """Take a toxic away, also from live connections."""
        self.toxics.remove(fitted)
        for connection in list(self._connections):
            if (link := connection.link(fitted.stream)) is not None:
                link.remove(fitted)


async def _resolved(host: str, port: int) -> tuple[int, str]:
    """Return family and number of an address; the first one, as Toxiproxy does.

    Raises:
        ValueError: There is none.
    """
    if not host:
        return 0, host
    try:
        async with asyncio.timeout(_RESOLVE_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError(f"lookup {host}: no such host") from error
    return found[0][0], str(found[0][4][0])


def toxic_view(fitted: Fitted) -> dict[str, Any]:
    """Return what the API shows of a toxic."""
    toxicity = fitted.toxicity
    return {
        "attributes": fitted.toxic.attributes(),
        "name": fitted.name,
        "type": fitted.toxic.kind,
        "stream": fitted.stream,
        "toxicity": int(toxicity) if toxicity == int(toxicity) else toxicity,
    }
