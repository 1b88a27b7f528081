"""`Listener`: a port of loopback, and every connection that came there, each with a task of its own; none outlives its end.

Not asyncio's server: closed between its accepting a connection and its making a transport of it, that loses the connection, open
(Python 3.11 asserts that it still listens, and swallows what it raises). Here a connection has its task in the turn in which it
comes, and whatever way that ends, the socket is closed behind it.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from reattach_chaos.ports import HOST, held

_LIMIT = 65_536
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_FULL_S = 1.0
"""A process without a free descriptor does not ask again before."""


Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


class Listener:
    """One listener; it may be shut and opened again, and ends with `close`.

    Args:
        serve: What is done with a connection; cancelled at the end. What it has left open is closed after it.
        tls: Of each connection; None: none.
        limit: Bytes that a reader holds before it lets its sender wait.
    """

    def __init__(self, serve: Serve, *, tls: ssl.SSLContext | None = None, limit: int = _LIMIT) -> None:
        self._serve = serve
        self._tls = tls
        self._limit = limit
        self._kept: socket.socket | None = None
        self._socket: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        """Where it listens, or did; 0 before it was opened."""

    def open(self, sock: socket.socket | None = None) -> None:
        """Listen: where it did before, or at a free port, which is kept until the end.

        Args:
            sock: One that listens already; closed with this.
        """
        if sock is None and self._kept is None:
            self._kept = held()
            self.port = self._kept.getsockname()[1]
        self._socket = socket.create_server((HOST, self.port)) if sock is None else sock
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]
        self._watch(self._socket)

    def shut(self) -> None:
        """Close the port; connections go on."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    async def close(self) -> None:
        """Close the port and every connection."""
        self.shut()
        await asyncio.sleep(0)  # a task that is cancelled before its first turn would close nothing
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._kept is not None:
            self._kept.close()

    def _watch(self, listening: socket.socket) -> None:
        if listening is self._socket:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection, _ = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # whoever came has left
        except OSError as error:
            if error.errno not in _FULL:
                raise
            loop.remove_reader(listening)
            loop.call_later(_FULL_S, self._watch, listening)
            return
        task = loop.create_task(self._converse(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(self._limit, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=self._tls)
        except OSError:
            return  # it left in its handshake
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            await self._serve(reader, writer)
        finally:
            if not transport.is_closing():
                transport.abort()
