"""`reattach follow [URL] RUN`: go on with a run after the last confirmed event, and show it to its end.

RUN is an id, a key or the start of either, in this order; what matches nothing is taken as an id of the server URL. URL may be
left out when the journal knows the run. `--from` only looks: it moves no mark, and works beside another follower.
"""

from __future__ import annotations

import argparse
from typing import Any

from reattach.cli import exits, following, journals, options
from reattach.cli.display import Display, choose
from reattach.stores.base import Store


def add(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "follow",
        help="go on with a run, after the last confirmed event",
        description="Show the events of a run from where you stopped, from the journal first, then live; status goes to stderr.",
    )
    parser.add_argument(
        "url", metavar="URL", nargs="?", help="the server; needed only for a run that the journal does not know"
    )
    parser.add_argument("which", metavar="RUN", help="an id, a key, or the start of one")
    parser.add_argument(
        "--from", dest="begin", metavar="beginning|tail|CURSOR", help="look on from here; confirms nothing"
    )
    options.add_client(parser)
    options.add_following(parser)
    parser.in_any_order = True
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do the command."""
    display = choose(args)

    def work() -> int:
        with journals.opened(args, make=True) as store:
            assert store is not None
            return _follow(args, store, display)

    return following.guarded(args, display, lambda: str(args.which), work)


def _follow(args: argparse.Namespace, store: Store, display: Display) -> int:
    url, profile, row = journals.locate(store, args)
    with options.client(args, url, store, profile, display) as client, following.limited(client, args.timeout):
        run = following.handle(client, args.which, row, display)
        if args.begin is not None:
            run = client.attach(run, after=args.begin)
            row = None if row is None else row._replace(committed=row.committed._replace(position=0, cursor=None))
        following.began(run.id, row, store, display)
        outcome = following.show(run, display, profile)
        display.ended(outcome)
        return exits.of_status(outcome.status)
