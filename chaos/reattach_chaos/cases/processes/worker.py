"""A process of ours that is one client after the other: `main([SOCKET])`, forked by the nursery.

A fork costs more than all that a short case does: each page that the child touches is copied. So this one stays. It listens on a
socket; each connection is a client, as in the nursery: one line is read, then the connection is the client's stdout, and its last
line is `EXITED` and the code. Journal, environment and streams are each client's own; what is left behind in the process (more
threads than its first client left) ends it, so that the next client is another's. A signal comes by the nursery, and ends both.
"""

import importlib
import json
import os
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import Any

from reattach_chaos.cases.processes.order import EXITED, read_order
from reattach_chaos.socket_path import short


def main(argv: Sequence[str]) -> int:
    """Be clients until one leaves something running; return the exit code."""
    (path,) = argv
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with short(path) as address:
            listener.bind(address)
        listener.listen(1)
        sys.stdout.write(json.dumps({"kind": "listening"}) + "\n")
        sys.stdout.flush()
        usual = 0
        while True:
            connection, _ = listener.accept()
            with connection:
                order = read_order(connection)
                if order is None:
                    continue
                code = _be(connection, order)
                usual = usual or threading.active_count()  # the library keeps one for all that a process follows
                goes = threading.active_count() > usual
                if goes:
                    listener.close()  # before the end is told: who comes then is refused, and is given another process
                connection.sendall(f"\n{EXITED}{code}\n".encode())
            if goes:
                return 0


def _be(connection: socket.socket, order: dict[str, Any]) -> int:
    """Be a client; return its exit code."""
    os.environ.clear()
    os.environ.update(order["env"])
    stderr = os.open(order["stderr"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.dup2(connection.fileno(), 1)
        os.dup2(stderr, 2)
    finally:
        os.close(stderr)
    with (
        os.fdopen(1, "w", encoding="utf-8", closefd=False) as sys.stdout,
        os.fdopen(2, "w", encoding="utf-8", closefd=False) as sys.stderr,
    ):
        try:
            code: int = importlib.import_module(order["module"]).main(order["argv"])
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        except BaseException:
            traceback.print_exc()
            code = 70
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(null, number)  # the connection's end is seen when it is closed here, too
    finally:
        os.close(null)
    return code
