"""Where our own clients are born: one process that has imported everything, and forks a client at each connection.

`python -m reattach_chaos.cases.processes.nursery SOCKET`. Hundreds of interpreters that each import the client would cost a
small machine minutes. What is forked is a process all the same, with a process group to be killed by, its own environment,
stdout and stderr.

One line is read on a connection, `{"module": …, "argv": […], "env": {…}, "stderr": FILE}`; then the connection is the client's
stdout, and its last line is ours: `EXITED`, and the code. What is written to the connection meanwhile, a word of `SIGNALS`, is sent
to the client's process group, by its parent, who alone knows that the group is still the client's.

It starts no thread, so that forking is safe. It ends with its stdin or on SIGTERM, and takes its clients with it; what becomes of
it, by kill -9 too, they end with it.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any, NoReturn

import reattach
from reattach_chaos.cases.processes.order import EXITED, read_order, read_signals
from reattach_chaos.orphans import die_with
from reattach_chaos.preload import import_all
from reattach_chaos.socket_path import short

MODULES = (
    "reattach.cli",
    "reattach_chaos.cases.inside.watched_client",
    "reattach_chaos.cases.inside.lister",
    "reattach_chaos.mutants.__main__",
    "reattach_chaos.cases.processes.worker",
    "reattach_chaos.cases.servers.server",
    "reattach_chaos.cases.servers.own_redis",
    "reattach_chaos.cases.inside.resolver",
)


def main() -> int:
    """Fork until stdin ends or SIGTERM comes; return the exit code."""
    for module in MODULES:
        importlib.import_module(module)
    import_all(reattach)
    gc.freeze()  # a collection in a client would copy the pages that it shares with us
    woken, waking = socket.socketpair()
    for end in (woken, waking):
        end.setblocking(False)
    signal.set_wakeup_fd(waking.fileno())
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    nursery = os.getpid()
    living: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with short(sys.argv[1]) as address:
            listener.bind(address)
        listener.listen(256)
        sys.stdout.write(json.dumps({"kind": "listening"}) + "\n")
        sys.stdout.flush()
        stdin = sys.stdin.fileno()
        while True:
            ready, _, _ = select.select([listener, stdin, woken, *living.values()], [], [])
            told = woken.recv(4096) if woken in ready else b""
            # Nobody writes to stdin.
            if stdin in ready or signal.SIGTERM in told:
                for pid in living:
                    _signal(pid, signal.SIGKILL)
                return 0
            if told:
                _bury(living)
            for pid, connection in list(living.items()):
                if connection in ready:
                    for number in read_signals(connection):
                        _signal(pid, number)
            if listener in ready:
                connection, _ = listener.accept()
                # Read by us: what follows on the connection is for us, too.
                order = read_order(connection)
                # A SIGTERM to the newborn waits until it is none of our deaf handler's.
                signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
                pid = os.fork() if order is not None else 0
                if pid == 0 and order is not None:
                    die_with(nursery)
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    signal.signal(signal.SIGTERM, signal.SIG_DFL)
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
                    for each in (listener, *living.values()):
                        each.close()
                    _live(connection, order)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
                if pid:
                    living[pid] = connection


def _bury(living: dict[int, socket.socket]) -> None:
    """Tell of each client that has ended."""
    while living:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with living.pop(pid) as connection, contextlib.suppress(OSError):
            connection.sendall(f"\n{EXITED}{os.waitstatus_to_exitcode(status)}\n".encode())


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        # It may not have made its group yet.
        os.kill(pid, number)
        os.killpg(pid, number)


def _live(connection: socket.socket, order: dict[str, Any]) -> NoReturn:
    """Become a client; never returns."""
    code = 70
    try:
        os.setsid()
        os.environ.clear()
        os.environ.update(order["env"])
        null = os.open(os.devnull, os.O_RDONLY)
        stderr = os.open(order["stderr"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for number, standard in ((null, 0), (connection.fileno(), 1), (stderr, 2)):
            os.dup2(number, standard)
        connection.close()
        sys.stdin = os.fdopen(0, "r", encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
        code = importlib.import_module(order["module"]).main(order["argv"])
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
