"""The server: the API on a port, the proxies behind it, until it is closed."""

import asyncio
import socket
from random import Random
from types import TracebackType

from reattach_chaos.listener import Listener
from reattach_chaos.toxiproxy.embedded.api import Api
from reattach_chaos.toxiproxy.embedded.http import Conversation
from reattach_chaos.toxiproxy.embedded.proxies import Proxies


class Server:
    """An asynchronous context manager: listens while it is entered.

    Args:
        listener: The API's socket, listening; closed with the server.
        seed: Of toxicity, jitter and sizes.
    """

    def __init__(self, listener: socket.socket, *, seed: int | None = None) -> None:
        self._socket = listener
        self.proxies = Proxies(Random(seed))
        self._api = Api(self.proxies)
        self._listener = Listener(self._converse)

    async def __aenter__(self) -> "Server":
        """Answer from now on."""
        self._listener.open(self._socket)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the API, every port and every connection (with FIN, or RST where that was arranged)."""
        await self._listener.close()
        await self.proxies.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Conversation(self._api, reader, writer).run()
