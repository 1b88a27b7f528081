"""Our own server under all cases of a run: the reference server in a process of its own, on free loopback ports.

`python -m reattach_chaos.cases.servers.server --heartbeat-ms N --seed N --default NAME [--mutant ID] [SCENARIO-FILE…]`; for one
case alone (`own_server.py`) with `--log PLACE --port N --admin-port N --born`, and `--line-end` where that is asked for. First
line on stdout: `{"kind": "serving", "url": …, "admin_url": …}`. The ordinary server, or a wrong one, but for three things: it is
deterministic where no other has its log, its heartbeat is short, since a stall costs several of them, and every token is good and
a principal of its own, so that cases played side by side never see each other's runs. It ends on SIGTERM and with its stdin; one
that a nursery bore, with that.
"""

import argparse
import asyncio
import json
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from reattach_chaos.cases.servers.server_steps import Step, Steps
from reattach_chaos.orphans import at_stdins_end
from reattach_mockserver.admin.app import AdminApplication
from reattach_mockserver.app import Application, create_app
from reattach_mockserver.bearer import Caller, Tokens, digest
from reattach_mockserver.host import Admin, bind, host, url_of
from reattach_mockserver.library import Library
from reattach_mockserver.logs.place import is_shared, log_at
from reattach_mockserver.mutants.registry import server_mutant
from reattach_mockserver.scenarios.parse import load_script
from reattach_mockserver.settings import Limits, Settings

LEASE_S = 2.0
"""The runs of an instance that was killed are taken over within this and a third, where several share a log."""


@dataclass(frozen=True, slots=True)
class EveryToken(Tokens):
    """Every token is good, and nobody else's."""

    def caller(self, token: str) -> Caller:
        """Return the principal of this token alone."""
        return Caller(principal_of(token), token=digest(token))


def principal_of(token: str) -> str:
    """Return the principal that a token speaks for on this server."""
    return f"case-{digest(token)[:24]}"


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until told to end; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m reattach_chaos.cases.servers.server")
    parser.add_argument("--heartbeat-ms", required=True, type=int)
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--default", required=True, help="the scenario of an input that names none")
    parser.add_argument("--mutant", default="", help="be wrong on purpose")
    parser.add_argument("--log", default="memory", help="keep it there; without it runs are forgotten with the process")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--admin-port", type=int, default=0)
    parser.add_argument("--line-end", choices=("lf", "crlf"), default="lf")
    parser.add_argument(
        "--step", type=Step.of, action="append", default=[], help="stand still there; see `server_steps.py`"
    )
    parser.add_argument("--born", action="store_true", help="a nursery watches over it: its stdin says nothing")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args(argv)
    application = server_mutant(args.mutant) if args.mutant else create_app
    stop = asyncio.Event()
    steps = Steps(args.step, lambda run: _number(app, run), stop.wait)
    settings = Settings(
        scripts=Library({script.name: script for script in map(load_script, args.files)}),
        default=args.default,
        log=log_at(args.log, lease=LEASE_S),
        limits=Limits(heartbeat_ms=args.heartbeat_ms, line_end=args.line_end),
        tokens=EveryToken({}),
        deterministic=not is_shared(args.log),  # it counts creates, and each instance would count its own
        seed=args.seed,
        hooks=steps.hooks(),
    )
    app = application(settings)
    with bind("127.0.0.1", args.port) as listener, bind("127.0.0.1", args.admin_port) as admin:
        asyncio.run(_serve(app, listener, admin, stop, born=args.born))
    return 0


async def _number(app: Application, run: str) -> int:
    """Return a run's number on this server."""
    known = await app.engine.log.run(run)
    return 0 if known is None else known.number


async def _serve(
    app: Application, listener: socket.socket, beside: socket.socket, stop: asyncio.Event, *, born: bool
) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

    def ready() -> None:
        told = {"kind": "serving", "url": url_of(listener), "admin_url": url_of(beside)}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()

    if not born:
        at_stdins_end(stop.set)
    await host(app, listener, stop, ready, admin=Admin(AdminApplication(app), beside))


if __name__ == "__main__":
    sys.exit(main())
