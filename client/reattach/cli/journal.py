"""`reattach journal show | export | prune | check`: what is on disk. Asks no server.

`show` is for people, `export` writes one JSON object an event, `check` verifies the whole file, also while others write it. They
change nothing; `prune` alone removes events, of runs that nobody needs anything of.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from reattach.cli import exits, journals, visible
from reattach.cli.display import unencodable
from reattach.cli.parser import span
from reattach.model import Event
from reattach.runtime import pruning
from reattach.runtime.failures import of_fault
from reattach.stores.base import RunRow, Store, StoreDamaged, StoreFailed, StoreNewer
from reattach.stores.entry import event_of, outcome_of

READ = 1_000
_EXCERPT = 60  # columns of an event's text or data


def add(subparsers: Any) -> None:
    """Add the command and its own commands."""
    parser = subparsers.add_parser(
        "journal",
        help="show, export, prune or check what is on disk",
        description="Look at the journal, or remove what nobody needs any more. Asks no server.",
    )
    commands = parser.add_subparsers(dest="journal_command", metavar="show|export|prune|check", required=True)
    for name, text, work in (
        ("show", "a run's events, for people", _show),
        ("export", "a run's events, one JSON object a line", _export),
    ):
        each = commands.add_parser(name, help=text, description=f"Print {text}.")
        each.add_argument("which", metavar="RUN", help="an id, a key, or the start of one")
        journals.add_journal(each)
        each.in_any_order = True
        each.set_defaults(run=work)
    prune = commands.add_parser(
        "prune",
        help="remove the events of runs that are done with",
        description="Remove the events of runs that have ended, are confirmed to their end and need nothing. Their keys, ids and "
        "outcomes stay: starting that work again is still attaching to it.",
    )
    prune.add_argument("file", metavar="FILE", nargs="?", help="the journal (default: as with --journal)")
    prune.add_argument(
        "--older-than",
        type=span,
        required=True,
        metavar="TIME",
        help="how long ago a run must have ended: a number with s, min, h or d, such as 30d",
    )
    journals.add_journal(prune)
    prune.in_any_order = True
    prune.set_defaults(run=_prune)
    check = commands.add_parser("check", help="verify the whole file", description="Verify the whole file, read only.")
    journals.add_journal(check)
    check.set_defaults(run=_check)


def _show(args: argparse.Namespace) -> int:
    if args.json:
        return _export(args)
    unencodable(sys.stdout)
    columns = os.get_terminal_size().columns if sys.stdout.isatty() else None
    with journals.opened(args, make=False) as store:
        row = journals.known(store, args.which)
        assert store is not None
        applied = store.applied(row.run, "main")
        for line in _facts(row, applied):
            print(visible.line(line))
        for event in _events(store, row):
            mark = " " if event.position <= applied else "+"
            print(visible.line(_line(event, mark), columns))
    return exits.GOOD


def _facts(row: RunRow, applied: int) -> Iterator[str]:
    yield f"run        {row.run_id or '-'}"
    yield f"key        {row.key or '-'}"
    yield f"server     {row.server} ({row.profile})"
    yield f"status     {(row.status or 'unknown').replace('_', ' ')}"
    yield f"created    {row.created_at:%Y-%m-%d %H:%M:%S} UTC"
    if row.settled_at is not None:
        yield f"settled    {row.settled_at:%Y-%m-%d %H:%M:%S} UTC"
    yield f"committed  {row.committed.position} ({row.committed.cursor or 'the beginning'})"
    yield f"confirmed  {applied}" + ("" if applied == row.committed.position else "   (+ is not confirmed yet)")
    if row.outcome is not None:
        outcome = outcome_of(row.outcome, row.run_id or "")
        yield f"result     {json.dumps(outcome.result, ensure_ascii=False)}"
        if outcome.problem is not None:
            yield f"problem    {outcome.problem.code}: {outcome.problem.message}"
        for each in outcome.operations:
            yield f"operation  {each.id} {each.status}"
    if row.committed.position:
        yield ""


def _line(event: Event, mark: str) -> str:
    if event.gap is not None:
        what = f"[{event.gap}]"
    elif event.text:
        what = json.dumps(event.text, ensure_ascii=False)
    else:
        what = json.dumps(event.data, ensure_ascii=False)
    place = str(event.sequence) if event.sequence is not None else event.cursor or "-"
    return f"{mark}{event.position:>6}  {place:>6}  {event.type:<18}  {visible.line(what, _EXCERPT)}"


def _export(args: argparse.Namespace) -> int:
    with journals.opened(args, make=False) as store:
        row = journals.known(store, args.which)
        assert store is not None
        for event in _events(store, row):
            print(json.dumps(_exported(event), separators=(",", ":")))
    return exits.GOOD


def _exported(event: Event) -> dict[str, Any]:
    if event.gap is not None:
        gap = event.gap
        return {
            "kind": "gap",
            "position": event.position,
            "reason": gap.reason,
            "after": gap.after,
            "until": gap.until,
            "missing": gap.missing,
            "snapshot": gap.snapshot,
        }
    return {
        "kind": event.kind,
        "position": event.position,
        "id": event.id,
        "cursor": event.cursor,
        "sequence": event.sequence,
        "time": None if event.time is None else event.time.isoformat(),
        "type": event.type,
        "text": event.text,
        "data": event.data,
    }


def _events(store: Store, row: RunRow) -> Iterator[Event]:
    position = 0
    while entries := store.read(row.run, position, READ):
        for entry in entries:
            yield event_of(entry.element, row.run_id or "", entry.position)
        position = entries[-1].position


def _prune(args: argparse.Namespace) -> int:
    if args.file is not None:
        if args.journal is not None:
            raise exits.Declined("the journal is named twice, as FILE and by --journal")
        args.journal = args.file
    place = journals.place(args, make=False)
    with journals.opened(args, make=False) as store:
        count = 0
        if store is not None:
            place = store.name  # an address without its password
            try:
                count = pruning.pruned(store, pruning.moment_before(datetime.now(UTC), args.older_than))
            except (StoreDamaged, StoreFailed) as error:
                raise of_fault(error, store.name) from error
    if args.json:
        print(json.dumps({"kind": "pruned", "journal": place, "runs": count}))
    else:
        kept = ": events removed; keys, ids and outcomes kept" if count else ""
        print(f"{'1 run' if count == 1 else f'{count} runs'} pruned{kept}")
    return exits.GOOD


def _check(args: argparse.Namespace) -> int:
    from reattach.stores.inspection import inspect

    path = journals.place(args, make=False)
    if journals.is_address(path):
        raise exits.Declined("a database is not checked from here: its server keeps what it holds whole")
    if not os.path.exists(path):
        raise exits.Declined(f"there is no journal {path!r}")
    try:
        report = inspect(path)
    except (StoreDamaged, StoreFailed) as error:
        if isinstance(error, StoreDamaged) and not isinstance(error, StoreNewer):
            _verdict(args, path, [error.detail], {})
            return exits.BAD
        raise of_fault(error, path) from error
    counts = {"runs": report.runs, "events": report.events, "gaps": report.gaps, "marks": report.marks}
    _verdict(args, path, list(report.violations), counts)
    return exits.BAD if report.violations else exits.GOOD


def _verdict(args: argparse.Namespace, path: str, violations: list[str], counts: dict[str, int]) -> None:
    if args.json:
        print(
            json.dumps({"kind": "checked", "journal": path, "ok": not violations, "violations": violations, **counts})
        )
        return
    for violation in violations:
        print(visible.line(violation))
    told = "   ".join(f"{name} {count}" for name, count in counts.items())
    verdict = f"INVALID: {len(violations)} found" if violations else "valid"
    print("   ".join(part for part in (path, told, verdict) if part))
