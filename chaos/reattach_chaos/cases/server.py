"""Our own server under all cases of a run: the reference server in a process of its own, deterministic, on free loopback ports.

`python -m reattach_chaos.cases.server --heartbeat-ms N --seed N --default NAME [--mutant ID] [SCENARIO-FILE…]`. First line on
stdout: `{"kind": "serving", "url": …, "admin_url": …}`. The ordinary server, or a wrong one, but for two things: its heartbeat is
short, since a stall costs several of them, and every token is good and a principal of its own, so that cases played side by
side never see each other's runs. It ends on SIGTERM and with its stdin.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
from dataclasses import dataclass

from reattach_mockserver.admin.app import AdminApplication
from reattach_mockserver.app import Application, create_app
from reattach_mockserver.bearer import Caller, Tokens, digest
from reattach_mockserver.host import Admin, bind, host, url_of
from reattach_mockserver.library import Library
from reattach_mockserver.mutants.registry import server_mutant
from reattach_mockserver.scenarios.parse import load_script
from reattach_mockserver.settings import Limits, Settings


@dataclass(frozen=True, slots=True)
class EveryToken(Tokens):
    """Every token is good, and nobody else's."""

    def caller(self, token: str) -> Caller:
        """Return the principal of this token alone."""
        return Caller(principal_of(token), token=digest(token))


def principal_of(token: str) -> str:
    """Return the principal that a token speaks for on this server."""
    return f"case-{digest(token)[:24]}"


def main() -> int:
    """Serve until told to end; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reattach_chaos.cases.server")
    parser.add_argument("--heartbeat-ms", required=True, type=int)
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--default", required=True, help="the scenario of an input that names none")
    parser.add_argument("--mutant", default="", help="be wrong on purpose")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    application = server_mutant(args.mutant) if args.mutant else create_app
    settings = Settings(
        scripts=Library({script.name: script for script in map(load_script, args.files)}),
        default=args.default,
        limits=Limits(heartbeat_ms=args.heartbeat_ms),
        tokens=EveryToken({}),
        deterministic=True,
        seed=args.seed,
    )
    with bind("127.0.0.1", 0) as listener, bind("127.0.0.1", 0) as admin:
        asyncio.run(_serve(application(settings), listener, admin))
    return 0


async def _serve(app: Application, listener: socket.socket, beside: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    stdin = sys.stdin.fileno()

    def heard() -> None:
        if not os.read(stdin, 1024):
            loop.remove_reader(stdin)
            stop.set()

    def ready() -> None:
        told = {"kind": "serving", "url": url_of(listener), "admin_url": url_of(beside)}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()

    loop.add_reader(stdin, heard)
    await host(app, listener, stop, ready, admin=Admin(AdminApplication(app), beside))


if __name__ == "__main__":
    sys.exit(main())
