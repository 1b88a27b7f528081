"""`Listener`: a port of loopback, and every connection that came there, each with a task of its own; none outlives its end.

Not asyncio's server: closed between its accepting a connection and its making a transport of it, that loses the connection, open
(Python 3.11 asserts that it still listens, and swallows what it raises). Here a connection has its task in the turn in which it
comes, and whatever way that ends, the socket is closed behind it.
"""

import asyncio
import contextlib
import errno
import secrets
import socket
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

HOST = "127.0.0.1"
_LIMIT = 65_536
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_FULL_S = 1.0
"""A process without a free descriptor does not ask again before."""

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_BELOW, _PORTS, _TRIES = 10_000, 12_000, 20

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


def free_port() -> int:
    """Return a port that nobody has, and that the system gives to no outgoing connection; 0, its choice, where it does not say.

    Who closes his port for a moment has to find it free again: of a port of the system's own range anybody's connection to
    anywhere may have made its own in between.
    """
    try:
        least = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
    ports = range(max(_BELOW, least - _PORTS), least)
    for _ in range(_TRIES if ports else 0):
        port = secrets.choice(ports)
        with contextlib.suppress(OSError), socket.create_server((HOST, port)):
            return port
    return 0


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
        self._socket: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        """Where it listens, or did; 0 before it was opened."""

    def open(self, sock: socket.socket | None = None) -> None:
        """Listen: where it did before, or at a free port.

        Args:
            sock: One that listens already; closed with this.

        Raises:
            OSError: Somebody else has the port by now.
        """
        self._socket = socket.create_server((HOST, self.port or free_port())) if sock is None else sock
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
