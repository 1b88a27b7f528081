"""A small HTTP/2 server in front of a real one, in plain text with prior knowledge: it says GOAWAY where a test plans it."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import httpx
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded

When: TypeAlias = Literal["unprocessed", "before the head"] | int
"""Before the request reached the server, which GOAWAY proves; after it did; or after so many pieces of the answer."""
_HOP = frozenset({"connection", "transfer-encoding", "keep-alive", "content-length"})


@dataclass
class Front:
    """What was asked, and what is planned: the nth request of a method and a path's last word → when GOAWAY comes."""

    upstream: str
    plan: Mapping[tuple[str, str, int], When]
    url: str = ""
    asked: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    connections: int = 0
    gone: int = 0
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """A GOAWAY in mid-stream waits for it."""
    serving: set[asyncio.Task[None]] = field(default_factory=set)
    _counted: Counter[tuple[str, str]] = field(default_factory=Counter)

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        heads: dict[int, Mapping[str, str]] = {}
        bodies: dict[int, bytes] = {}
        tasks: list[asyncio.Task[None]] = []
        try:
            while data := await reader.read(65536):
                for event in connection.receive_data(data):
                    match event:
                        case RequestReceived():
                            heads[event.stream_id], bodies[event.stream_id] = dict(event.headers), b""
                        case DataReceived():
                            bodies[event.stream_id] += event.data
                            connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                        case StreamEnded():
                            id = event.stream_id
                            tasks.append(
                                asyncio.create_task(self._answer(connection, writer, id, heads[id], bodies[id]))
                            )
                writer.write(connection.data_to_send())
        except OSError:
            pass  # a client may go as it likes
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(
        self, connection: H2Connection, writer: asyncio.StreamWriter, id: int, head: Mapping[str, str], body: bytes
    ) -> None:
        method, path = head[":method"], head[":path"]
        self.asked.append((method, path, head))
        kind = (method, path.partition("?")[0].rpartition("/")[2])
        self._counted[kind] += 1
        when = self.plan.get((*kind, self._counted[kind]))
        if when == "unprocessed":
            self._goaway(connection, writer, id - 2)
            return
        headers = {name: value for name, value in head.items() if not name.startswith(":") and name not in _HOP}
        async with (
            httpx.AsyncClient(trust_env=False, timeout=None) as client,
            client.stream(method, self.upstream + path, headers=headers, content=body or None) as response,
        ):
            if when == "before the head":
                self._goaway(connection, writer, id)
                return
            kept = [(name, value) for name, value in response.headers.items() if name not in _HOP]
            connection.send_headers(id, [(":status", str(response.status_code)), *kept])
            writer.write(connection.data_to_send())
            pieces = 0
            async for piece in response.aiter_raw():
                blocks = (
                    [block + b"\n\n" for block in piece.split(b"\n\n") if block] if kind[1] == "events" else [piece]
                )
                for block in blocks:
                    connection.send_data(id, block)
                    writer.write(connection.data_to_send())
                    pieces += 1
                    if when == pieces:
                        await self.ready.wait()
                        self._goaway(connection, writer, id)
                        return
            connection.end_stream(id)
            writer.write(connection.data_to_send())

    def _goaway(self, connection: H2Connection, writer: asyncio.StreamWriter, last: int) -> None:
        self.gone += 1
        connection.close_connection(error_code=0, last_stream_id=last)
        writer.write(connection.data_to_send())
        writer.close()


@asynccontextmanager
async def front(upstream: str, plan: Mapping[tuple[str, str, int], When]) -> AsyncIterator[Front]:
    """Serve HTTP/2 on a free loopback port before a server of HTTP/1.1."""
    stage = Front(upstream, plan)
    server = await asyncio.start_server(stage.serve, "127.0.0.1", 0)
    async with server:
        stage.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield stage
    for each in stage.serving:
        each.cancel()
    await asyncio.gather(*stage.serving, return_exceptions=True)
