"""The flags that `run`, `follow` and `cancel` share, and the client that they describe. Secrets are never arguments."""

from __future__ import annotations

import argparse
import os

from reattach import Client
from reattach.cli import exits
from reattach.cli.display import Display
from reattach.cli.journals import add_journal
from reattach.cli.parser import seconds
from reattach.observe import Fact
from reattach.policy import Policy
from reattach.stores.base import Store

TOKEN = "REATTACH_TOKEN"


def add_client(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a client."""
    parser.add_argument("--profile", metavar="P", help="the server's dialect (default: the run's, else native)")
    parser.add_argument(
        "--transport",
        default="auto",
        metavar="T",
        help="how events come: auto, sse, websocket, longpoll or poll (default: %(default)s)",
    )
    parser.add_argument(
        "--give-up-after",
        type=patience,
        default=argparse.SUPPRESS,
        metavar="S",
        help="seconds without an attach or an answer, or 'never' (default: 600)",
    )
    parser.add_argument(
        "--token-env", metavar="NAME", help=f"the environment variable that holds the token (default: {TOKEN})"
    )
    add_journal(parser)


def add_following(parser: argparse.ArgumentParser) -> None:
    """Add the flags of who follows a run to its end."""
    parser.add_argument(
        "--on-gap",
        choices=("raise", "snapshot", "continue"),
        default="raise",
        help="where events cannot be had: stop, go on from the server's state, or at the oldest event kept",
    )
    parser.add_argument("--timeout", type=seconds, metavar="S", help="seconds until we stop looking; the run goes on")


def patience(text: str) -> float | None:
    """Return a number of seconds, None for ever."""
    return None if text == "never" else seconds(text)


def token(args: argparse.Namespace) -> str | None:
    """Return the token of the environment, None if there is none.

    Raises:
        Declined: The variable that was named is not set.
    """
    if args.token_env is None:
        return os.environ.get(TOKEN) or None
    found = os.environ.get(args.token_env)
    if not found:
        raise exits.Declined(f"--token-env {args.token_env}: this environment variable is not set")
    return found


def client(args: argparse.Namespace, url: str, store: Store, profile: str, display: Display) -> Client:
    """Return the client that the flags describe; with -v, what it finds out is shown as notes."""
    policy = Policy()
    patience = getattr(args, "give_up_after", policy.give_up_after)
    if args.timeout is not None:
        # A start that is never answered ends with the time limit, too.
        patience = args.timeout if patience is None else min(patience, args.timeout)

    def tell(fact: Fact) -> None:
        if fact.name in ("received", "applied"):
            return  # each event's own instants would drown its text
        counted = f" {fact.count}" if fact.count else ""
        display.note(f"{fact.at:%H:%M:%S.%f} {fact.name}{counted} {fact.cursor or ''} {fact.detail}".rstrip())

    return Client(
        url,
        store,
        token=token(args),
        profile=profile,
        transport=args.transport,
        on_gap=getattr(args, "on_gap", "raise"),
        policy=Policy(give_up_after=patience),
        observer=tell if args.verbose else None,
    )
