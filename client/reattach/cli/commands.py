"""Which commands there are and where each is. Only the one that is asked for is imported.

Other packages add theirs through the entry-point group `reattach.commands`: an entry point is a callable `add(subparsers)` that
adds its own parser with `set_defaults(run=function)`, and `function(args)` returns the exit code.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from reattach.cli import exits
from reattach.cli.parser import Parser, add_flags

GROUP = "reattach.commands"
BUILT_IN = {
    "run": "start work, or go on with it, and show its events",
    "follow": "go on with a run, after the last confirmed event",
    "runs": "list the runs in the journal and what they need",
    "cancel": "cancel a run and wait for the truth",
    "respond": "answer what a paused run waits for, and show how it goes on",
    "reconcile": "say what became of a start whose answer was lost",
    "journal": "show, export, prune or check what is on disk",
}


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the parsed arguments, with `run`, the function that does the command.

    Raises:
        Declined: The command's package cannot be loaded.
        SystemExit: Wrong arguments, or only help was asked for.
    """
    parser = Parser(
        prog="reattach", description="A long agent run that survives everything that happens to its connection."
    )
    add_flags(parser, top=True)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    name = next((word for word in words if not word.startswith("-")), None)
    # Whatever is installed is searched for them: our own commands start without it.
    added = {} if name in BUILT_IN else {each.name: each for each in entry_points(group=GROUP)}
    if name in BUILT_IN:
        importlib.import_module(f"reattach.cli.{name}").add(subparsers)
    elif name in added:
        _load(added[name])(subparsers)
    elif name is None:
        _list_all(subparsers, added)
    else:
        near = difflib.get_close_matches(name, [*BUILT_IN, *added], 1)
        parser.error(
            f"there is no command {name!r}"
            + (f", did you mean {near[0]!r}?" if near else "; reattach --help lists them")
        )
    _complete(subparsers)
    args: argparse.Namespace = parser.parse_args(words)
    if name is None:
        parser.print_help()
        raise SystemExit(exits.USAGE)
    return args


def _load(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except ImportError as error:
        raise exits.Declined(
            f"the command {entry.name!r} needs {error.name or error}, which is not installed. "
            f"Install it with: pip install {_install(entry)}"
        ) from error


def _install(entry: EntryPoint) -> str:
    package = entry.module.partition(".")[0]
    if package.startswith("reattach_"):
        return f"'reattach[{package.removeprefix('reattach_')}]'"
    return entry.dist.name if entry.dist is not None else package


def _list_all(subparsers: Any, added: dict[str, EntryPoint]) -> None:
    """Name every command, for the help; one that cannot be loaded is named, too."""
    for name, text in BUILT_IN.items():
        subparsers.add_parser(name, help=text)
    for name, entry in sorted(added.items()):
        try:
            entry.load()(subparsers)
        except Exception:
            subparsers.add_parser(name, help=f"(not usable: pip install {_install(entry)})")


def _complete(subparsers: Any) -> None:
    """Give every parser, also of other packages and of commands of commands, the flags that are accepted everywhere."""
    for parser in subparsers.choices.values():
        add_flags(parser)
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                _complete(action)
