"""`reattach reconcile KEY --run ID | --not-created`: your word on a start whose outcome nobody here can know. Asks no server."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from reattach import Client
from reattach.cli import exits, journals, visible
from reattach.stores.base import RunRow, Store


def add(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "reconcile",
        help="say what became of a start whose answer was lost",
        description="Say which run a start created whose answer was lost for good, or that it created none. Look at the server or "
        "the vendor's page first: this is your word, and nobody is asked.",
    )
    parser.add_argument("key", metavar="KEY", help="the key of the start, as reattach runs lists it")
    word = parser.add_mutually_exclusive_group(required=True)
    word.add_argument("--run", dest="run_id", metavar="ID", help="the run that it created; it is followed from now on")
    word.add_argument("--not-created", action="store_true", help="it created none; the key is free again")
    parser.add_argument("--server", metavar="URL", help="where the key was used, if it was used on several servers")
    journals.add_journal(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do the command."""
    with journals.opened(args, make=False) as store:
        if store is None:
            raise exits.Declined(f"the journal knows no start {args.key!r}; there is no journal yet")
        row = _row(store, args)
        with Client(row.server, store, profile=row.profile) as client:
            client.reconcile(row.key or row.request_sha256 or args.key, run_id=args.run_id)
    if args.json:
        print(json.dumps({"kind": "reconciled", "key": row.key, "server": row.server, "run": args.run_id}), flush=True)
    if not args.quiet:
        what = f"{args.key} is run {args.run_id}.     Next: reattach follow {args.run_id}"
        free = f"{args.key} created nothing; " + ("the key is free." if row.key else "the run waits for answers again.")
        print(visible.line(free if args.run_id is None else what), file=sys.stderr if args.json else sys.stdout)
    return exits.GOOD


def _row(store: Store, args: argparse.Namespace) -> RunRow:
    """Return the start that KEY names, exactly; a response to a pause has no key and is named by the start of its digest.

    Raises:
        Declined: There is none, or there are several.
    """
    rows = store.rows(None if args.server is None else journals.server(args.server))
    found = [row for row in rows if row.key == args.key]
    found = found or [row for row in rows if journals.unanswered(row) and journals.name(row) == args.key]
    if not found:
        raise exits.Declined(f"the journal knows no start {args.key!r}; reattach runs lists what it knows")
    if len(found) > 1:
        servers = ", ".join(row.server for row in found)
        raise exits.Declined(f"{args.key!r} was used on several servers ({servers}); say which with --server")
    return found[0]
