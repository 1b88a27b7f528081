"""`reattach serve`: arguments, the first line, signals, exit codes. Everything else is elsewhere.

Where the words come from: the surface page, section 2. Checked by tests/mockserver/test_cli.py.
"""

import argparse
import asyncio
import errno
import importlib.util
import ipaddress
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from reattach_mockserver.scenarios.ready import READY, about, load_ready

_BAD_ARGUMENTS = 64
_NOT_KNOWN = 3
_INTERRUPTED, _TERMINATED = 130, 143
_ADMIN_TOKEN = "REATTACH_ADMIN_TOKEN"
_NEEDED = (
    "starlette",
    "uvicorn",
    "websockets",
    "yaml",
)  # by the extra; found before a file is read, since one may be YAML


class _Wrong(Exception):
    """What was asked for cannot be done; the text says what to do instead."""

    def __init__(self, text: str, code: int = _BAD_ARGUMENTS) -> None:
        super().__init__(text)
        self.code = code


def serve(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Add the subcommand `serve` to a command line; its `run` takes the arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "serve",
        help="run the reference server",
        description="Serve scenarios and recordings as resumable runs.",
        epilog=_ready(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_arguments(parser)


def _ready() -> str:
    """Return the lines of the help that tell what can be played without a file."""
    width = max(map(len, READY)) + 2
    told = 'ready to be played, by {"input": {"scenario": NAME}} or --scenario NAME:'
    return "\n".join([told, *(f"  {name:<{width}}{about(name)}" for name in READY)])


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=_port, default=8700, help="port, 0 for a free one (default: %(default)s)")
    parser.add_argument(
        "--log",
        default="memory",
        metavar="memory|FILE|redis://…",
        help="where runs are kept; a file outlives kill -9, a Redis is shared by replicas",
    )
    parser.add_argument(
        "--lease",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="after which a killed replica's runs are taken over by another (default: %(default)s)",
    )
    parser.add_argument(
        "--scenario",
        action=_Play,
        nargs="+",
        default=[],
        metavar="FILE",
        help="what runs play, a file or the name of a ready one; the last is the default",
    )
    parser.add_argument(
        "--recording", action=_Play, nargs="+", metavar="FILE", help="a real service's events, one a line, as a run"
    )
    parser.add_argument("--tokens", metavar="FILE", help="lines 'principal token' or 'principal token none'")
    parser.add_argument("--no-auth", action="store_true", help="listen beyond loopback without tokens")
    parser.add_argument(
        "--admin-port",
        type=_port,
        metavar="N",
        help=f"serve the admin interface, for tests, on this port (0: a free one); its token: ${_ADMIN_TOKEN}",
    )
    parser.add_argument(
        "--admin-host", default="127.0.0.1", metavar="HOST", help="its address; beyond loopback it needs its token"
    )
    parser.add_argument("--seed", type=int, help="in place of the scenarios' own seeds")
    parser.add_argument("--deterministic", action="store_true", help="the same creates give the same bytes")
    parser.add_argument(
        "--mutant",
        metavar="ID",
        help="be wrong on purpose, in one thing, to try who reads; an id that is none lists them",
    )
    for names, text in (
        (("--json",), "first line as JSON"),
        (("-q", "--quiet"), "say less"),
        (("-v", "--verbose"), "say more"),
        (("--no-color",), "no colours (there are none)"),
    ):
        parser.add_argument(*names, action="store_true", default=argparse.SUPPRESS, help=text)
    parser.set_defaults(run=run, play=[])


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= 65_535):
        raise argparse.ArgumentTypeError(f"{text!r} is no port; expected 0 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3_600:
        raise argparse.ArgumentTypeError(f"{text!r} is not from 0.1 to 3600 seconds")
    return seconds


class _Play(argparse.Action):
    """Keeps scenarios and recordings in the order in which they were named: the last is the default."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        kind = self.dest
        namespace.play = [*getattr(namespace, "play", []), *((kind, path) for path in values)]


def run(args: argparse.Namespace) -> int:
    """Serve until a signal comes; return the exit code."""
    try:
        return _run(args)
    except _Wrong as wrong:
        print(f"reattach serve: {wrong}", file=sys.stderr)
        return wrong.code


def _run(args: argparse.Namespace) -> int:
    if args.tokens and args.no_auth:
        raise _Wrong("--tokens and --no-auth contradict each other; leave one out")
    if not args.tokens and not args.no_auth and not _is_loopback(args.host):
        raise _Wrong(
            f"--host {args.host} is reachable from elsewhere and no token would be asked for. "
            "Name a file with --tokens, or say --no-auth if that is meant."
        )
    admin_token = os.environ.get(_ADMIN_TOKEN) or None
    if args.admin_port is not None and admin_token is None and not _is_loopback(args.admin_host):
        raise _Wrong(
            f"--admin-host {args.admin_host} is reachable from elsewhere, and whoever reaches it may do anything. "
            f"Set {_ADMIN_TOKEN} to a token that it asks for, or leave it on loopback."
        )
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise _Wrong(f"{', '.join(missing)} not installed. Run: pip install 'reattach[mockserver]'")
    application = _application(args.mutant)
    settings = _settings(args)
    with ExitStack() as sockets:
        listener = sockets.enter_context(_bound(args.host, args.port, "--port"))
        admin = None
        if args.admin_port is not None:
            admin = sockets.enter_context(_bound(args.admin_host, args.admin_port, "--admin-port"))
        return asyncio.run(_serve(args, application, settings, listener, admin, admin_token))


def _application(mutant: str | None) -> Any:
    """Return what makes the server: the right one, or a wrong one that says so."""
    from reattach_mockserver.app import create_app

    if mutant is None:
        return create_app
    from reattach_mockserver.mutants.registry import UnknownMutant, server_mutant

    try:
        wrong = server_mutant(mutant)
    except UnknownMutant as unknown:
        raise _Wrong(str(unknown)) from None
    told = f"this server is WRONG ON PURPOSE (--mutant {wrong.id}): it {wrong.words}"
    print(f"reattach serve: {told} ({', '.join(wrong.breaks)})", file=sys.stderr, flush=True)
    return wrong


def _bound(host: str, port: int, option: str) -> socket.socket:
    from reattach_mockserver.host import bind

    try:
        return bind(host, port)
    except OSError as error:
        told = f"cannot listen on {host}:{port} ({error.strerror or error})"
        free = f"; {option} names another, 0 takes a free one" if error.errno == errno.EADDRINUSE else ""
        raise _Wrong(told + free, _NOT_KNOWN) from error


def _settings(args: argparse.Namespace) -> Any:
    from reattach_mockserver.library import Library
    from reattach_mockserver.scenarios.errors import RecordingError, ScenarioError
    from reattach_mockserver.scenarios.recording import load_recording
    from reattach_mockserver.settings import Playable, Settings

    given: dict[str, Playable] = {}
    default = "hello"
    for kind, path in args.play:
        try:
            playable = _scenario(path) if kind == "scenario" else load_recording(path)
        except (ScenarioError, RecordingError) as error:
            raise _Wrong(str(error)) from error
        given.pop(playable.name, None)
        given[playable.name] = playable
        default = playable.name
    return Settings(
        scripts=Library(given),
        default=default,
        log=_log(args),
        tokens=_tokens(args.tokens),
        deterministic=args.deterministic,
        seed=args.seed,
        kill=partial(os.kill, os.getpid(), signal.SIGKILL),
    )


def _scenario(place: str) -> Any:
    """Read a file; a ready scenario where there is none and its name is meant."""
    from reattach_mockserver.scenarios.parse import load_script

    if Path(place).exists():
        return load_script(place)
    if place in READY:
        return load_ready(place)
    if "/" not in place and "." not in place:
        raise _Wrong(
            f"--scenario {place}: there is no such file, and no ready scenario of that name; ready are {', '.join(READY)}"
        )
    return load_script(place)


def _log(args: argparse.Namespace) -> Any:
    from reattach_mockserver.logs.place import NoSuchLog, is_shared, log_at

    if args.deterministic and is_shared(args.log):
        raise _Wrong("--deterministic counts creates, and replicas would count apart: it needs a log of its own")
    try:
        return log_at(args.log, lease=args.lease)
    except NoSuchLog as wrong:
        raise _Wrong(f"--log: {wrong}") from None


def _tokens(path: str | None) -> Any:
    from reattach_mockserver.bearer import parse_tokens

    if path is None:
        return None
    try:
        return parse_tokens(Path(path).read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise _Wrong(f"--tokens {path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise _Wrong(f"--tokens {path}: {error}") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _serve(
    args: argparse.Namespace,
    application: Any,
    settings: Any,
    listener: socket.socket,
    admin: socket.socket | None,
    admin_token: str | None,
) -> int:
    from reattach_mockserver.admin.app import AdminApplication
    from reattach_mockserver.engine.players import UnknownScript
    from reattach_mockserver.host import Admin, host, url_of
    from reattach_mockserver.logs.base import LogError

    code = 0
    stop = asyncio.Event()

    def end(exit_code: int) -> None:
        nonlocal code
        code = exit_code
        stop.set()

    def ready() -> None:
        url = url_of(listener)
        admin_url = None if admin is None else url_of(admin)
        if getattr(args, "json", False):
            facts = {"kind": "serving", "url": url, "pid": os.getpid(), "log": settings.log.name}
            wrong = {} if args.mutant is None else {"mutant": args.mutant}
            print(json.dumps({**facts, "admin_url": admin_url, "protocol": 1, **wrong}), flush=True)
        else:
            print(f"reattach serving on {url}", flush=True)
            if admin_url is not None:
                print(f"admin interface on {admin_url}", flush=True)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, end, _INTERRUPTED)
    loop.add_signal_handler(signal.SIGTERM, end, _TERMINATED)
    try:
        app = application(settings)
        beside = None if admin is None else Admin(AdminApplication(app, admin_token), admin)
        await host(app, listener, stop, ready, admin=beside)
    except UnknownScript as unknown:
        raise _Wrong(
            f"{settings.log.name} holds an unfinished run of the scenario {unknown.name!r}, which was not given. "
            "Start with the same --scenario and --recording files as before."
        ) from unknown
    except LogError as error:
        raise _Wrong(f"--log {settings.log.name}: {error}", _NOT_KNOWN) from error
    return code


class _Parser(argparse.ArgumentParser):
    """Ends with the exit code that wrong arguments have everywhere in reattach; argparse's own is 2."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(_BAD_ARGUMENTS, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run `serve` on its own, without the other commands."""
    parser = _Parser(
        prog="python -m reattach_mockserver.cli",
        epilog=_ready(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_arguments(parser)
    args = parser.parse_args(argv)
    return run(args)


if __name__ == "__main__":
    raise SystemExit(main())
