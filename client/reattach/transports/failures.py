"""The HTTP library's exceptions told as the seam's: the one place where they are sorted.

By the names of their classes, since httpcore, httpx and its continuations share the names but not the classes, and a caller may
bring a client of any of them.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl

import anyio

from reattach.transports.base import WireLost, WireRefused

PEER = "reattach_peer"
"""Where an exception of our own connections says whom it did not reach: the server, or a proxy."""

# Before a connection that can carry the request is there, nothing of the request has left.
_UNSENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"})
# How h11 and httpcore say that the server, or what is between, hung up.
_CLOSED = (
    "peer closed connection without sending complete message body",
    "Server disconnected without sending a response",
)
_IMPOSSIBLE = frozenset({"LocalProtocolError", "UnsupportedProtocol", "InvalidURL"})
_TRANSPORT = frozenset(
    {"TransportError", "NetworkError", "ProtocolError", "TimeoutException", "ProxyError", "StreamError"}
)
_NETWORK = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


def told(exc: Exception, *, sent: bool) -> WireLost | WireRefused:
    """Return what the exception means here.

    Args:
        exc: Whatever the library raised.
        sent: Whether something of the request may have left this machine.
    """
    names = {each.__name__ for each in type(exc).__mro__}
    if not sent and (names & _IMPOSSIBLE or not (names & _TRANSPORT or isinstance(exc, _NETWORK))):
        return WireRefused(_detail(exc))
    return WireLost(_detail(exc), definite=bool(names & _UNSENT))


def _detail(exc: Exception) -> str:
    """Say it in the operating system's own words, which the library's hide; else in the library's."""
    if str(exc).startswith(_CLOSED):
        return "connection closed before the answer's end"
    text = f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__
    root: BaseException = exc
    while root.__cause__ is not None:
        root = root.__cause__
    if isinstance(root, OSError) and not isinstance(root, ssl.SSLError):
        number = root.errno or 0
        if number in errno.errorcode:
            words = os.strerror(number)  # its own text may be the event loop's: "Connect call failed ('127.0.0.1', 1)"
            peer = exc.__dict__.get(PEER)
            return words[0].lower() + words[1:] + (f" by {peer}" if peer and number == errno.ECONNREFUSED else "")
        if isinstance(root, socket.gaierror) and root.strerror:
            return root.strerror[0].lower() + root.strerror[1:]  # "name or service not known"
    return text if root is exc or not str(root) or str(root) in text else f"{text} ({root})"
