"""Where the clients are born: one process that has imported everything, and forks a follower at each connection.

`python -m reattach_chaos.demo.nursery SOCKET`. Twenty interpreters that each import the client would cost a small machine half of
the demo's time. Each follower is a process of its own all the same, with a process id to be killed by, and a session of its own;
its stdin and stdout are the connection. On it one line is read, `{"module": …, "argv": […], "stderr": FILE}`, and one written,
`{"kind": "born", "pid": N}`; the rest is the follower's.

It starts no thread, so that forking is safe. It ends with its stdin. It does not bury its dead: until it ends, no process id of a
follower can be another process's. A follower ends with it.
"""

import importlib
import json
import os
import select
import socket
import sys
from typing import NoReturn

import reattach
from reattach_chaos.orphans import die_with
from reattach_chaos.preload import import_all
from reattach_chaos.socket_path import short

MODULES = ("reattach_chaos.demo.follower", "reattach_chaos.demo.naive")


def main() -> int:
    """Fork until stdin ends; return the exit code."""
    for module in MODULES:
        importlib.import_module(module)
    import_all(reattach)
    nursery = os.getpid()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with short(sys.argv[1]) as address:
            listener.bind(address)
        listener.listen(64)
        sys.stdout.write(json.dumps({"kind": "listening"}) + "\n")
        sys.stdout.flush()
        while True:
            ready, _, _ = select.select([listener, sys.stdin.fileno()], [], [])
            if listener not in ready:
                return 0
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    die_with(nursery)
                    listener.close()
                    _live(connection)


def _live(connection: socket.socket) -> NoReturn:
    """Become a follower; never returns."""
    code = 70
    try:
        os.setsid()
        born = json.loads(_line(connection))
        connection.sendall(json.dumps({"kind": "born", "pid": os.getpid()}).encode() + b"\n")
        os.dup2(connection.fileno(), 0)
        os.dup2(connection.fileno(), 1)
        stderr = os.open(born["stderr"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(stderr, 2)
        sys.stdin = os.fdopen(0, "r", encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.argv = [born["module"], *born["argv"]]
        code = importlib.import_module(born["module"]).main()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _line(connection: socket.socket) -> bytes:
    """Read one line and not a byte more: what follows is the follower's."""
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            os._exit(0)
        line += byte
    return line


if __name__ == "__main__":
    sys.exit(main())
