"""What is said to the nursery on a client's connection: its order, and then signals; and how its last line back begins.

The order is one line of JSON, `{"module", "argv", "env", "stderr"}`; then the connection becomes the client's stdout. A signal is a
line with its word.
"""

import contextlib
import json
import signal
import socket
from typing import Any, Literal

EXITED = "\x00exited "
"""How the last line on the connection begins; the exit code follows."""
Word = Literal["term", "kill", "stop", "cont"]
SIGNALS: dict[Word, signal.Signals] = {
    "term": signal.SIGTERM,
    "kill": signal.SIGKILL,
    "stop": signal.SIGSTOP,
    "cont": signal.SIGCONT,
}
_BY_LINE = {f"{word}\n".encode(): number for word, number in SIGNALS.items()}
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


def read_signals(connection: socket.socket) -> list[signal.Signals]:
    """Read what is there: the signals in their order. Who hung up wants the client gone; another word is none.

    A word is written as a whole, and read as one.
    """
    try:
        heard = connection.recv(4096)
    except OSError:
        heard = b""
    if not heard:
        return [signal.SIGKILL]
    return [_BY_LINE[line] for line in heard.splitlines(keepends=True) if line in _BY_LINE]
