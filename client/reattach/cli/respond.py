"""`reattach respond RUN [ACTION ANSWER]…`: answer all that a paused run waits for, then show the run that goes on from it.

An ANSWER is `approve`, `reject` or a tool's result as JSON. Without any, each action is asked for, on stderr, and a line of stdin
is its answer. Repeating a command that was interrupted is safe: the same answers are the same run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from reattach.cli import endings, exits, following, journals, options
from reattach.cli.display import Display, choose
from reattach.model import Answer, RequiredAction, Status
from reattach.stores.base import Store


def add(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "respond",
        help="answer what a paused run waits for, and show how it goes on",
        usage="%(prog)s [OPTIONS] [URL] RUN [ACTION ANSWER]…",  # argparse would print the words twice
        description="Answer all that a paused run waits for and show the run that goes on from it. Without answers you are asked.",
    )
    parser.add_argument(
        "words",
        metavar="[URL] RUN [ACTION ANSWER]",
        nargs="+",
        help="the run (an id, a key, or the start of one; URL only where the journal does not know it), then for each action its "
        "id and approve, reject or JSON",
    )
    parser.add_argument("--reason", default="", metavar="TEXT", help="why, for all that is rejected")
    options.add_client(parser)
    options.add_following(parser)
    parser.in_any_order = True
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do the command."""
    display = choose(args)
    words: list[str] = list(args.words)
    args.url = words.pop(0) if len(words) > 1 and "://" in words[0] else None
    args.which = words.pop(0)
    args.asking = False

    def work() -> int:
        if len(words) % 2:
            raise exits.Declined(f"{words[-1]!r} has no answer beside it: ACTION approve, ACTION reject or ACTION JSON")
        if args.json and not words:
            raise exits.Declined("with --json nobody is asked; give the answers: ACTION approve|reject|JSON")
        with journals.opened(args, make=True) as store:
            assert store is not None
            return _respond(args, store, display, list(zip(words[::2], words[1::2], strict=True)))

    return following.guarded(args, display, lambda: str(args.which), work, asking=lambda: bool(args.asking))


def _respond(args: argparse.Namespace, store: Store, display: Display, given: Sequence[tuple[str, str]]) -> int:
    url, profile, row = journals.locate(store, args)
    with options.client(args, url, store, profile, display) as client, following.limited(client, args.timeout):
        paused = following.handle(client, args.which, row, display)
        status = paused.status()
        if status is not Status.REQUIRES_ACTION:
            raise exits.Declined(f"run {paused.id} waits for no answer: it is {status.value}. Nothing was sent.")
        actions = paused.wait().required_actions
        args.asking = not given
        answers = _given(actions, given, args.reason) if given else _asked(actions, args.reason)
        args.asking = False
        with following.watched(display):
            display.waiting("answered; waiting for the run that goes on")
            run = paused.respond(*answers)
        following.began(
            run.id, store.find(row.server if row else journals.server(url), profile, run_id=run.id), store, display
        )
        outcome = following.show(run, display, profile)
        display.ended(outcome)
        return exits.of_status(outcome.status)


def _given(actions: Sequence[RequiredAction], given: Sequence[tuple[str, str]], reason: str) -> list[Answer]:
    """Return the answers of the command line; which are missing is found by the library.

    Raises:
        Declined: There is no such action, or no such answer.
    """
    known = {action.id: action for action in actions}
    answers = []
    for name, word in given:
        if name not in known:
            raise exits.Declined(
                f"there is no action {name!r}, there is {', '.join(known) or 'none'}. Nothing was sent."
            )
        answers.append(_answer(known[name], word, reason))
    return answers


def _answer(action: RequiredAction, word: str, reason: str) -> Answer:
    match word.strip():
        case "approve":
            return action.approve()
        case "reject":
            return action.reject(reason)
        case text:
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise exits.Declined(
                    f"{text!r} is no answer to {action.id}: approve, reject or a JSON value is needed. Nothing was sent."
                ) from error
            return action.answer(value)


def _asked(actions: Sequence[RequiredAction], reason: str) -> list[Answer]:
    """Return the answers of a person, one line of stdin each; a line that is none is asked for again.

    Raises:
        Declined: stdin ended. Nothing was sent.
    """
    answers = []
    for action in actions:
        print(endings.described(action), file=sys.stderr)
        form = "the result as JSON, or reject" if action.kind == "client_tool" else "approve or reject"
        while True:
            print(f"  {form}: ", end="", file=sys.stderr, flush=True)
            line = sys.stdin.readline()
            if not line:
                raise exits.Declined(f"no answer to {action.id}. Nothing was sent; the run waits.", exits.WAITS)
            try:
                answers.append(_answer(action, line, reason))
            except exits.Declined as error:
                print(f"  {error}", file=sys.stderr)
                continue
            break
    return answers
