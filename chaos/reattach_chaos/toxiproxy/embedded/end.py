"""An end: one of the two sockets of a proxied connection, and how it is closed so that the peer sees what was meant.

FIN: all that was written is in the kernel, then our side ends; what the peer has sent and nobody wants is read away first, since a
kernel answers a close over unread bytes with a reset. RST: the linger option, set when the connection begins, makes every close
one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from reattach_chaos.toxiproxy.embedded.connection import Connection
    from reattach_chaos.toxiproxy.embedded.link import Link

_LINGER_ZERO = struct.pack("ii", 1, 0)
_DISCARD_BYTES = 4 * 1024 * 1024  # a peer that sends more than this while it is cut off may see a reset


class End(asyncio.Protocol):
    """One socket. `out` carries what it reads, `into` what it is to write; both are given before it reads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._transport: asyncio.Transport | None = None
        self._finishing = False
        self._resets = False
        self._eof = False
        self.lost = False
        self.writable = True
        self.out: Link | None = None
        self.into: Link | None = None

    # -- what asyncio tells us

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read nothing before the other side is there."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.pause_reading()
        self._connection.end_made(self)

    def data_received(self, data: bytes) -> None:
        """Hand on what was read."""
        if self.out is not None:
            self.out.feed(data)

    def eof_received(self) -> bool:
        """Hand on the close; our own side stays open until the other link says so."""
        self._over()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Be gone: for both links."""
        self.lost = True
        self.writable = False
        if self.into is not None:
            self.into.stop()
        self._over()
        self._connection.end_lost()

    def pause_writing(self) -> None:
        """Hold the sender back."""
        self.writable = False
        if self.into is not None:
            self.into.advance()

    def resume_writing(self) -> None:
        """Let the sender go on, or close, if that is what it was waited for."""
        self.writable = not self.lost
        if self._finishing:
            # In the next turn: asyncio is in the middle of its own write, and would tell us twice that the connection is lost.
            asyncio.get_running_loop().call_soon(self.close)
        elif self.into is not None:
            self.into.target_writable()

    # -- what the links want

    def read(self, wanted: bool) -> None:
        """Read on, or leave what comes with the kernel."""
        # After an end of stream asyncio would report it again and again.
        if self._transport is not None and not self._eof and not self.lost:
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def write(self, data: bytes) -> None:
        """Write at once, as far as the kernel takes it."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def finish(self) -> None:
        """Close as soon as the kernel has all that was written."""
        if self._transport is None or self._finishing:
            return
        self._finishing = True
        if self._transport.get_write_buffer_size() == 0:
            self.close()
        else:
            # Tells us only when all is out, and not at some lower mark.
            self._transport.set_write_buffer_limits(high=0)

    # -- for the connection

    def reset_at_close(self) -> None:
        """Let every close of this socket be a reset."""
        if self._transport is not None:
            self._resets = True
            with contextlib.suppress(OSError):
                self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)

    def close(self) -> None:
        """Close now, whatever is still to be written."""
        if self._transport is None or self.lost or self._transport.is_closing():
            return
        if not self._resets:
            with contextlib.suppress(OSError):
                sock = self._transport.get_extra_info("socket")
                sock.shutdown(socket.SHUT_WR)
                _discard(sock.fileno())
        self._transport.abort()

    def _over(self) -> None:
        if not self._eof:
            self._eof = True
            if self.out is not None:
                self.out.source_over()


def _discard(descriptor: int) -> None:
    """Read away what has come, without waiting."""
    left = _DISCARD_BYTES
    with contextlib.suppress(OSError):  # nothing more is there
        while left > 0 and (data := os.read(descriptor, 256 * 1024)):
            left -= len(data)
