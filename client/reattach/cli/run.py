"""`reattach run URL INPUT`: start work, or go on with it, and show it to its end.

INPUT is a text, `-` reads it from stdin (UTF-8; one newline at its end is left out, as a shell does); `--data FILE` gives a JSON
file's value instead. `--key K` names the work: the same key is the same run, for ever. Without one a name is derived from the
input and the journal, so that the same command run again goes on with an unfinished run; once that has ended, the same command
is new work.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from pathlib import Path
from typing import Any

from reattach.cli import exits, following, journals, options
from reattach.cli.display import Display, choose
from reattach.runtime import jobs, listing, outcomes
from reattach.stores.base import RunRow, Store
from reattach.stores.inspection import identity


def add(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "run",
        help="start work, or go on with it, and show its events",
        description="Start work on a server and show its text as it streams; status goes to stderr. Kill it and run it again: it "
        "goes on. An unfinished run of the same server and input is followed instead of starting another.",
    )
    parser.add_argument("url", metavar="URL", help="the server, such as http://127.0.0.1:8700")
    parser.add_argument("input", metavar="INPUT", nargs="?", help="what the agent is given; - reads it from stdin")
    parser.add_argument("--key", metavar="K", help="your own name for this work: the same key is the same run")
    parser.add_argument("--new", action="store_true", help="start another run, also beside an unfinished one")
    parser.add_argument("--data", metavar="FILE", help="a JSON file's value (object, array or text) in place of INPUT")
    parser.add_argument("--session", metavar="S", help="the conversation; a new one by default")
    options.add_client(parser)
    options.add_following(parser)
    parser.in_any_order = True
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do the command."""
    display = choose(args)
    known = [args.key or ""]

    def work() -> int:
        if args.key is not None and args.new:
            raise exits.Declined("--key and --new contradict each other: a key names one run for ever; leave one out")
        with journals.opened(args, make=True) as store:
            assert store is not None
            return _start(args, store, display, known)

    return following.guarded(args, display, lambda: known[0], work)


def _start(args: argparse.Namespace, store: Store, display: Display, known: list[str]) -> int:
    given = _input(args)
    server = journals.server(args.url)
    profile = args.profile or "native"
    with (
        options.client(args, args.url, store, profile, display) as client,
        following.limited(client, args.timeout),
    ):
        key = args.key
        if key is None:
            _, digest = listing.request(given, "-", args.session, "reject", None)
            key = _derived(args, store, server, profile, digest, display)
        known[0] = key
        with following.watched(display):
            display.waiting(f"starting: waiting for {server}")
            started = client.start(given, key=key, session_id=args.session)
        following.began(started.id, store.find(server, profile, run_id=started.id), store, display)
        outcome = following.show(started, display, profile)
        display.ended(outcome)
        return exits.of_status(outcome.status)


def _input(args: argparse.Namespace) -> Any:
    if args.input is None and args.data is None:
        raise exits.Declined(f"what is the agent to do? reattach run {args.url} INPUT, or --data FILE")
    if args.input is not None and args.data is not None:
        raise exits.Declined("give the work as INPUT, or as a JSON file with --data, and not both")
    if args.data is not None:
        return _json_file(args.data)
    if args.input != "-":
        return args.input
    try:
        return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise exits.Declined(f"stdin is not UTF-8 text (byte {error.start})") from error


def _json_file(path: str) -> Any:
    try:
        value = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise exits.Declined(f"--data {path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise exits.Declined(f"--data {path}: is not JSON ({error})") from error
    if not isinstance(value, dict | list | str):
        raise exits.Declined(f"--data {path}: an object, an array or a text is needed, not {json.dumps(value)}")
    return value


def _derived(args: argparse.Namespace, store: Store, server: str, profile: str, digest: str, display: Display) -> str:
    """Return the key of an unfinished run of this input, or a new one.

    A new key is made of the input's digest, the journal's own name and a count: two that start at once mean the same run, two
    machines never do. With --new it is random.
    """
    same = [row for row in store.rows(server, profile) if row.request_sha256 == digest and row.key is not None]
    if args.new:
        return f"run-{digest[:8]}-{secrets.token_hex(6)}"
    for row in same:
        if outcomes.needs_in(store, jobs.newest(store, row)) != "nothing":
            display.note(
                f"going on with {row.run_id or 'an unanswered start'}, an unfinished run of this input (--new starts another)"
            )
            return _key(row)
    return f"run-{digest[:8]}-{identity(store.name)[:8]}-{len(same) + 1}"


def _key(row: RunRow) -> str:
    assert row.key is not None
    return row.key
