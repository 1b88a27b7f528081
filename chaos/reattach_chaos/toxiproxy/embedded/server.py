"""The server: the API on a port, the proxies behind it, until it is closed."""

import asyncio
import contextlib
import socket
from random import Random
from types import TracebackType

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
        self._listener = listener
        self.proxies = Proxies(Random(seed))
        self._api = Api(self.proxies)
        self._server: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Server":
        """Answer from now on."""
        self._server = await asyncio.start_server(self._converse, sock=self._listener)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the API, every port and every connection (with FIN, or RST where that was arranged)."""
        assert self._server is not None
        self._server.close()
        for task in self._conversations:
            task.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)
        await self.proxies.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._conversations.add(task)
        try:
            # Our own end cancels us; asyncio would log a connection's cancelled task as a fault.
            with contextlib.suppress(asyncio.CancelledError):
                await Conversation(self._api, reader, writer).run()
        finally:
            self._conversations.discard(task)
