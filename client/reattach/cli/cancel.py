"""`reattach cancel RUN`: ask for a run to be cancelled, then wait for the truth, which may be that it completed.

Cancelled is not rolled back: what took effect, and what is in doubt, is listed. A run that was cancelled as asked is exit 0 here.
"""

from __future__ import annotations

import argparse
from typing import Any

from reattach.cli import endings, exits, following, journals, options
from reattach.cli.display import Display, choose
from reattach.cli.parser import seconds
from reattach.model import Status
from reattach.stores.base import Store

WAIT = 30.0


def add(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "cancel",
        help="cancel a run and wait for the truth",
        description="Ask for a run to be cancelled and wait until it has settled; it may have completed. List what is not undone.",
    )
    parser.add_argument(
        "url", metavar="URL", nargs="?", help="the server; needed only for a run that the journal does not know"
    )
    parser.add_argument("which", metavar="RUN", help="an id, a key, or the start of one")
    parser.add_argument(
        "--timeout", type=seconds, default=WAIT, metavar="S", help="seconds until it must have settled (default: 30)"
    )
    options.add_client(parser)
    parser.in_any_order = True
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do the command."""
    display = choose(args)

    def work() -> int:
        with journals.opened(args, make=True) as store:
            assert store is not None
            return _cancel(args, store, display)

    return following.guarded(args, display, lambda: str(args.which), work)


def _cancel(args: argparse.Namespace, store: Store, display: Display) -> int:
    url, profile, row = journals.locate(store, args)
    with options.client(args, url, store, profile, display) as client:
        found = following.handle(client, args.which, row, display)
        with following.watched(display):
            display.waiting("asked to cancel; waiting until it has settled")
            outcome = found.cancel(timeout=args.timeout)
            display.waiting("")
    display.ended(outcome)
    for line in endings.effects(outcome) if outcome.status is not Status.CANCELLED else ():
        display.note(line)  # too late is not undone either
    return exits.GOOD if outcome.status is Status.CANCELLED else exits.of_status(outcome.status)
