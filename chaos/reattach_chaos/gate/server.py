"""The gate as a server: one listening port a lane, one relay a connection.

Loopback only. Ends when told; connections that are open then are closed. Never here: what is cut, or how.
"""

import asyncio
from functools import partial
from types import TracebackType

from reattach_chaos.gate import sockets
from reattach_chaos.gate.history import History
from reattach_chaos.gate.plan import Lane
from reattach_chaos.gate.relay import READ_BYTES, Connection
from reattach_chaos.listener import Listener

CONNECT_S = 5.0  # loopback: a server that does not accept within this is gone


class Gate:
    """All lanes before one server. Use it as an asynchronous context manager.

    Args:
        upstream: The server's host and port.
        lanes: As `read_plan` gave them.
        history: Where to write; stays the caller's.
    """

    def __init__(self, upstream: tuple[str, int], lanes: tuple[Lane, ...], history: History) -> None:
        self._upstream = upstream
        self._lanes = lanes
        self._history = history
        self._doors: list[Listener] = []
        self._count = 0
        self.ports: dict[str, int] = {}
        """The lane's name → its port; filled on entry."""

    async def __aenter__(self) -> "Gate":
        """Open a free port for each lane."""
        for lane in self._lanes:
            door = Listener(partial(self._serve, lane), limit=READ_BYTES)
            door.open()
            self._doors.append(door)
            self.ports[lane.name] = door.port
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every port and connection."""
        for door in self._doors:
            await door.close()

    async def _serve(self, lane: Lane, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        number = self._count
        self._history.write("connect", lane=lane.name, conn=number)
        try:
            async with asyncio.timeout(CONNECT_S):
                server = await asyncio.open_connection(*self._upstream, limit=READ_BYTES)
        except (OSError, TimeoutError) as error:
            self._history.write("trouble", lane=lane.name, conn=number, message=f"no server: {error}")
            sockets.rst(writer)
        else:
            await Connection(number, lane, self._history, (reader, writer), server).run()
