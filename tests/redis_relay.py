"""A relay in front of Redis that cuts at a chosen command: before Redis sees it, or before its answer comes back.

It runs in the test's own loop and decides by count, never by time.
"""

import asyncio
from contextlib import suppress
from typing import Literal

# What belongs to a connection and not to a log's work: a fault there is one of connecting, which the others are as well.
_GREETINGS = {b"HELLO", b"AUTH", b"SELECT", b"CLIENT", b"INFO", b"PING", b"SUBSCRIBE", b"CONFIG", b"PUBSUB"}

Where = Literal["before", "after"]


class Relay:
    """Use as an async context manager; `url` leads to the Redis at `port` by way of it."""

    def __init__(self, port: int, database: int = 0) -> None:
        self._port = port
        self._database = database
        self._links: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._fewer = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._countdown = 0
        self._where: Where = "before"
        self.cuts = 0
        self.commands = 0
        self.silent = False
        self.refuses = False

    async def __aenter__(self) -> "Relay":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/{self._database}"

    def disarm(self) -> None:
        """Cut no more; what was cut stays counted."""
        self._countdown = 0

    def arm(self, number: int, where: Where) -> None:
        """Cut the connection that carries the `number`-th command from now on, once."""
        self._countdown, self._where, self.cuts = number, where, 0

    async def fewer_than(self, number: int) -> None:
        """Wait until fewer connections are left."""
        while len(self._links) >= number:
            self._fewer.clear()
            await self._fewer.wait()

    @property
    def links(self) -> int:
        """How many connections there are."""
        return len(self._links)

    def cut(self) -> None:
        """Cut every connection."""
        for ends in self._links:
            for end in ends:
                end.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        other_reader, other = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 26)
        self._links.add((writer, other))
        swallow = asyncio.Event()
        back = asyncio.create_task(self._back(other_reader, writer, swallow))
        self._tasks |= {back, asyncio.current_task()}  # type: ignore[arg-type]  # a connection is served by a task
        try:
            while True:
                command = await _command(reader)
                if command[0].upper() not in _GREETINGS:
                    self.commands += 1
                    self._countdown -= 1
                    if self._countdown == 0:
                        self.cuts += 1
                        if self._where == "before":
                            break
                        swallow.set()
                if not self.silent:
                    other.write(_text(command))
        except (OSError, EOFError):
            pass  # one of the two is gone
        finally:
            if swallow.is_set():
                await back
            other.transport.abort()
            writer.transport.abort()
            self._links.discard((writer, other))
            self._fewer.set()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, swallow: asyncio.Event) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if swallow.is_set():
                    break  # Redis has done it; nobody will know
                if not self.silent:
                    writer.write(data)
        writer.transport.abort()


async def _command(reader: asyncio.StreamReader) -> list[bytes]:
    count = await reader.readuntil(b"\r\n")
    words = []
    for _ in range(int(count[1:])):
        size = int((await reader.readuntil(b"\r\n"))[1:])
        words.append((await reader.readexactly(size + 2))[:-2])
    return words


def _text(command: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in command)
