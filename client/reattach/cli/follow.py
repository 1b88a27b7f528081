"""`reattach follow [URL] RUN`: go on with a run after the last confirmed event, and show it to its end.

RUN is an id, a key or the start of either, in this order; what matches nothing is taken as an id of the server URL. URL may be
left out when the journal knows the run. `--from` only looks: it moves no mark, and works beside another follower.
"""

from __future__ import annotations

import argparse
from typing import Any

from reattach.cli import exits, following, journals, options
from reattach.cli.display import Display, choose
from reattach.client import Client, Run
from reattach.stores.base import RunRow, Store


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
        "--from",
        dest="begin",
        metavar="beginning|tail|CURSOR",
        help="look on from here; confirms nothing",
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
    row = journals.find(store, args.which, url=args.url, profile=args.profile)
    if row is None and args.url is None:
        raise exits.Declined(
            f"the journal knows no run {args.which!r}; give its server, too: reattach follow URL {args.which}"
        )
    url = args.url if row is None else row.server
    profile = args.profile or ("native" if row is None else row.profile)
    with options.client(args, url, store, profile, display) as client, following.limited(client, args.timeout):
        followed = client.attach(args.which) if row is None else _known(client, row, display)
        if args.begin is not None:
            followed = client.attach(followed, after=args.begin)
        elif row is not None and row.committed.position:
            following.show_confirmed(store, row, display)
        key, cursor = (None, None) if row is None else (row.key, row.committed.cursor)
        display.began(followed.id, key, cursor if args.begin is None else None)
        outcome = following.show(followed, display, profile)
        display.ended(outcome)
        return exits.of_status(outcome.status)


def _known(client: Client, row: RunRow, display: Display) -> Run:
    if row.run_id is not None:
        return client.attach(row.run_id)
    # Its start was never answered: the same key is sent again, now, so that the run has an id to show.
    (unanswered,) = [run for run in client.runs() if run.key == row.key]
    with following.watched(display):
        display.waiting(f"starting again: no answer from {row.server} yet")
        unanswered.status()
    return unanswered
