"""`reattach demo`, `proxy` and `chaos`: the arguments, nothing else. Light: what a command needs is imported when it runs.

Found by the client's command line through the entry-point group `reattach.commands`; runs on its own as
`python -m reattach_chaos.cli demo`. Words and flags: the surface page, section 2.
"""

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from reattach_chaos.cases.arguments import chaos as chaos

_USAGE = 64
_EVENTS, _SEED = 132, 7
_NEEDED = ("starlette", "uvicorn", "yaml")  # by the server, which is a process of its own: better said before it starts


def demo(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Add `demo` to the command `reattach`."""
    parser = subparsers.add_parser(
        "demo",
        help="watch a run survive a cut at every one of its events",
        description="Start a server, a gate and clients on loopback, cut the connection at every event boundary with FIN, RST "
        "and a stall, lose the answer of the create, kill the client, and compare what was shown with the server's log.",
    )
    parser.add_argument("--recording", type=Path, metavar="FILE", help="play a recorded stream instead")
    parser.add_argument(
        "--events", type=int, default=_EVENTS, metavar="N", help=f"length of the run (default {_EVENTS})"
    )
    parser.add_argument("--seed", type=int, default=_SEED, metavar="N", help=f"text, sizes and kills (default {_SEED})")
    parser.add_argument("--client", choices=("reattach", "naive"), default="reattach", help="who is put to the test")
    _add_flags(
        parser,
        (("--json",), "JSON lines on stdout, people's text on stderr"),
        (("-q", "--quiet"), "only the verdict"),
        (("-v", "--verbose"), "keep the files of a good demo, too, and name them"),
        (("--no-color",), "no colours"),
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Play the demo that the arguments ask for; return the exit code."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"reattach demo: {', '.join(missing)} not installed. Run: pip install 'reattach[chaos]'", file=sys.stderr)
        return _USAGE
    from reattach_chaos.demo.command import Options, run

    return run(
        Options(
            recording=args.recording,
            events=args.events,
            seed=args.seed,
            client=args.client,
            as_json=getattr(args, "json", False),
            quiet=getattr(args, "quiet", False),
            verbose=getattr(args, "verbose", False),
            color=not getattr(args, "no_color", False) and not _no_color(),
        )
    )


def proxy(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Add `proxy` to the command `reattach`."""
    parser = subparsers.add_parser(
        "proxy",
        help="run a Toxiproxy server without Toxiproxy",
        description="Serve Toxiproxy's HTTP API, and proxies with its toxics. Its clients and its command line work unchanged.",
    )
    parser.add_argument(
        "--listen",
        default="127.0.0.1:8474",
        metavar="HOST:PORT",
        help="where the API is, port 0: free (default: %(default)s)",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help='proxies to begin with: JSON, [{"name", "listen", "upstream", "enabled"}]',
    )
    _add_flags(
        parser,
        (("--json",), "first line as JSON"),
        (("-q", "--quiet"), "do not name the proxies of the file"),
        (("-v", "--verbose"), "taken, as all commands take it; there is nothing more to say"),
        (("--no-color",), "taken, as all commands take it; nothing is coloured"),
    )
    parser.set_defaults(run=run_proxy)


def run_proxy(args: argparse.Namespace) -> int:
    """Serve until a signal comes; return the exit code."""
    from reattach_chaos.toxiproxy.command import run

    return run(args.listen, args.config, as_json=getattr(args, "json", False), quiet=getattr(args, "quiet", False))


def _add_flags(parser: argparse.ArgumentParser, *flags: tuple[tuple[str, ...], str]) -> None:
    # Given before the subcommand too: what was said there must not be taken back here.
    for names, words in flags:
        parser.add_argument(*names, action="store_true", default=argparse.SUPPRESS, help=words)


def _no_color() -> bool:
    return bool(os.environ.get("NO_COLOR"))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with the surface's code for wrong arguments; argparse's own is 2."""
        self.print_usage(sys.stderr)
        self.exit(_USAGE, f"{self.prog}: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chaos package's commands on their own."""
    parser = _Parser(prog="python -m reattach_chaos.cli")
    subparsers = parser.add_subparsers(dest="command", required=True)
    for add in (demo, proxy, chaos):
        add(subparsers)
    args = parser.parse_args(argv)
    code: int = args.run(args)
    return code


if __name__ == "__main__":
    sys.exit(main())
