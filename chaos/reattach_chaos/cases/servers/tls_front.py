"""`TlsFront`: TLS before a case's gate, with a certificate that the client knows, or, when that is asked for, another name's.

What it relays it does not read. An end is passed on as an end; a reset as an end without TLS's goodbye, which a client has to take
for a cut all the same: asyncio resets no connection under TLS. Loopback only. The key is in the package and so nobody's secret: it
is good for nothing but a case on this machine.
"""

import asyncio
import contextlib
import ssl
from pathlib import Path
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"
KNOWN = Path(__file__).parent / "certificates" / "known.pem"
"""The certificate of `localhost`, with its key; a client trusts it that is told so."""
ELSEWHERE = KNOWN.with_name("elsewhere.pem")
"""Another name's, signed by nobody whom anybody knows."""
READ_BYTES = 65_536


class TlsFront:
    """One front; use it as an asynchronous context manager.

    Args:
        host: Of what is behind it.
        port: Of that.
    """

    def __init__(self, host: str, port: int) -> None:
        self._behind = (host, port)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.wrong = 0
        """So many connections to come are shown the other certificate."""

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Self:
        """Listen."""
        right, wrong = _context(KNOWN), _context(ELSEWHERE)

        def named(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
            if self.wrong:
                self.wrong -= 1
                connection.context = wrong

        right.sni_callback = named
        self._server = await asyncio.start_server(self._serve, HOST, 0, ssl=right)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close everything."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            inside = await asyncio.open_connection(*self._behind)
        except OSError:
            writer.transport.abort()
            self._tasks.discard(task)
            return
        try:
            with contextlib.suppress(
                asyncio.CancelledError
            ):  # asyncio would log a connection's cancelled task as a fault
                await asyncio.gather(_relay(reader, inside[1]), _relay(inside[0], writer))
        finally:
            inside[1].transport.abort()
            writer.transport.abort()
            self._tasks.discard(task)


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(READ_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        writer.transport.abort()
    else:
        with contextlib.suppress(OSError):
            writer.close()


def _context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
