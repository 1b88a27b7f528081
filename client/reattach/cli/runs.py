"""`reattach runs`: the runs in the journal and what each needs from you. Asks nobody, needs no network."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from datetime import UTC, datetime
from typing import Any

from reattach.cli import exits, journals
from reattach.runtime import listing, outcomes
from reattach.stores.base import RunRow, Store
from reattach.stores.entry import outcome_of

_NEXT = {"follow": "follow {}", "respond": "respond {}", "reconcile": "reconcile {} --run ID (or --not-created)"}
_DROPPED_FIRST = ("AGE", "CURSOR", "SERVER", "STATUS", "KEY")  # where the terminal is too narrow


def add(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "runs",
        help="list the runs in the journal and what they need",
        description="List the runs of the journal, newest first: those that need something, or all. Asks no server.",
    )
    parser.add_argument("--all", action="store_true", help="also those that need nothing more")
    parser.add_argument("--server", metavar="URL", help="only runs of this server")
    journals.add_journal(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do the command."""
    with journals.opened(args, make=False) as store:
        listed = [] if store is None else _listed(store, args.server)
    shown = [(row, needs) for row, needs in listed if args.all or needs != "nothing"]
    if args.json:
        for row, needs in shown:
            print(json.dumps(_facts(row, needs)), flush=True)
        return exits.GOOD
    if shown:
        print(_table(shown, columns=shutil.get_terminal_size().columns if sys.stdout.isatty() else None))
    print(_closing(listed, shown))
    return exits.GOOD


def _listed(store: Store, url: str | None) -> list[tuple[RunRow, str]]:
    rows = store.rows(None if url is None else journals.server(url))
    return [(row, _needs(row, applied, answered)) for row, applied, answered in listing.weighed(store, rows)]


def _needs(row: RunRow, applied: int | None, answered: bool) -> str:
    """Return what a run needs, with what it waits for."""
    needs: str = outcomes.needs_of(row, applied, answered=answered)
    if needs != "respond" or row.outcome is None:
        return needs
    kinds = [action.kind.replace("_", " ") for action in outcome_of(row.outcome, row.run_id or "").required_actions]
    counted = [f"{kinds.count(kind)} {kind}{'s' if kinds.count(kind) > 1 else ''}" for kind in dict.fromkeys(kinds)]
    return f"respond: {', '.join(counted)}" if counted else needs


def _facts(row: RunRow, needs: str) -> dict[str, Any]:
    return {
        "kind": "run",
        "run": row.run_id,
        "key": row.key,
        "server": row.server,
        "profile": row.profile,
        "status": row.status or "unknown",
        "cursor": row.committed.cursor,
        "needs": needs.partition(":")[0],
        "created_at": row.created_at.isoformat(),
        "settled_at": None if row.settled_at is None else row.settled_at.isoformat(),
    }


def _table(shown: list[tuple[RunRow, str]], *, columns: int | None) -> str:
    now = datetime.now(UTC)
    several = len({row.server for row, _ in shown}) > 1
    table = {
        "RUN": [row.run_id or "-" for row, _ in shown],
        "KEY": [row.key or (journals.name(row) if journals.unanswered(row) else "-") for row, _ in shown],
        "SERVER": [row.server for row, _ in shown],
        "STATUS": [(row.status or "unknown").replace("_", " ") for row, _ in shown],
        "CURSOR": [row.committed.cursor or "-" for row, _ in shown],
        "AGE": [age((now - row.created_at).total_seconds()) for row, _ in shown],
        "NEEDS": [needs for _, needs in shown],
    }
    if not several:
        del table["SERVER"]
    for name in _DROPPED_FIRST:
        if columns is not None and name in table and _width(table) > columns:
            del table[name]
    widths = {name: max(len(name), *map(len, cells)) for name, cells in table.items()}
    lines = [
        "   ".join(cell.ljust(widths[name]) for name, cell in zip(table, row, strict=True)).rstrip()
        for row in [tuple(table), *zip(*table.values(), strict=True)]
    ]
    return "\n".join(lines)


def _width(table: dict[str, list[str]]) -> int:
    return sum(max(len(name), *map(len, cells)) + 3 for name, cells in table.items()) - 3


def age(seconds: float) -> str:
    """Return a span of time in its largest whole unit."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _closing(listed: list[tuple[RunRow, str]], shown: list[tuple[RunRow, str]]) -> str:
    if not listed:
        return "no runs yet.     Next: reattach run URL INPUT"
    needing = [(row, needs) for row, needs in listed if needs != "nothing"]
    finished = len(listed) - len(needing)
    hint = "" if len(shown) == len(listed) else " (--all)"
    told = f"{len(needing)} need{'s' if len(needing) == 1 else ''} something, {finished} finished{hint}."
    for word, form in _NEXT.items():
        for row, needs in needing:
            if needs.partition(":")[0] == word:
                return f"{told}     Next: reattach {form.format(row.run_id or journals.name(row))}"
    return told
