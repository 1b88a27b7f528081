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

from reattach_chaos.listener import Listener

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
        self.wrong = 0
        """So many connections to come are shown the other certificate."""

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._listener.port

    async def __aenter__(self) -> Self:
        """Listen."""
        right, wrong = _context(KNOWN), _context(ELSEWHERE)

        def named(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
            if self.wrong:
                self.wrong -= 1
                connection.context = wrong

        right.sni_callback = named
        self._listener = Listener(self._serve, tls=right)
        self._listener.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close everything."""
        await self._listener.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inside = await asyncio.open_connection(*self._behind)
        except OSError:
            return
        try:
            await asyncio.gather(_relay(reader, inside[1]), _relay(inside[0], writer))
        finally:
            inside[1].transport.abort()
            writer.transport.abort()


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
