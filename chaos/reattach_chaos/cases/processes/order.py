"""The order for a client: one line of JSON on the connection that becomes its stdout: `{"module", "argv", "env", "stderr"}`."""

import contextlib
import json
import socket
from typing import Any

EXITED = "\x00exited "
"""How the last line on the connection begins; the exit code follows."""
ORDER_S = 5.0  # it is sent with the connection


def read_order(connection: socket.socket) -> dict[str, Any] | None:
    """Read one line; None, and the connection closed, where none comes."""
    connection.settimeout(ORDER_S)
    line = b""
    with contextlib.suppress(OSError, ValueError):
        while not line.endswith(b"\n") and (data := connection.recv(1 << 20)):
            line += data
        order: dict[str, Any] = json.loads(line)
        connection.settimeout(None)
        return order
    connection.close()
    return None
