"""`held`: a loopback port that is kept for one of ours: nobody else is given it before that listens, or while it is away.

Without, who closes his port for a moment may find it as the source port of anybody's connection to anywhere.

The socket has the port and does not listen; who listens on it beside must allow that its address is used again, as all servers do.
"""

import socket

HOST = "127.0.0.1"


def held() -> socket.socket:
    """Return a socket that has a port of its own, on which a server may listen beside it."""
    socket_ = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        socket_.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        socket_.bind((HOST, 0))
    except OSError:
        socket_.close()
        raise
    return socket_
