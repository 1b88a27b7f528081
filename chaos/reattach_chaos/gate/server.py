"""The gate as a server: one listening port a lane, one relay a connection.

Loopback only. Ends when told; connections that are open then are closed. Never here: what is cut, or how.
"""

import asyncio
import contextlib
from types import TracebackType

from reattach_chaos.gate import sockets
from reattach_chaos.gate.history import History
from reattach_chaos.gate.plan import Lane
from reattach_chaos.gate.relay import READ_BYTES, Connection

HOST = "127.0.0.1"
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
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0
        self.ports: dict[str, int] = {}
        """The lane's name → its port; filled on entry."""

    async def __aenter__(self) -> "Gate":
        """Open a free port for each lane."""
        for lane in self._lanes:
            # The default argument ties the lane to this port.
            async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lane: Lane = lane) -> None:
                await self._serve(lane, reader, writer)

            server = await asyncio.start_server(accept, HOST, 0, limit=READ_BYTES)
            self._servers.append(server)
            self.ports[lane.name] = server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every port and connection."""
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, lane: Lane, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        number = self._count
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._history.write("connect", lane=lane.name, conn=number)
        try:
            async with asyncio.timeout(CONNECT_S):
                server = await asyncio.open_connection(*self._upstream, limit=READ_BYTES)
        except (OSError, TimeoutError) as error:
            self._history.write("trouble", lane=lane.name, conn=number, message=f"no server: {error}")
            sockets.rst(writer)
        else:
            # The gate's end cancels us; asyncio would log a connection's cancelled task as a fault.
            with contextlib.suppress(asyncio.CancelledError):
                await Connection(number, lane, self._history, (reader, writer), server).run()
        finally:
            self._tasks.discard(task)
