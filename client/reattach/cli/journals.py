"""Which journal, and which run in it: what `--journal`, the environment and RUN mean.

A journal that was damaged is put aside, said on stderr, and the command goes on with a new one. Commands that only look make no
file.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reattach.cli import exits, visible
from reattach.runtime import jobs
from reattach.runtime.setup import address, open_journal
from reattach.stores import open_store
from reattach.stores.base import RunRow, Store

HOME = "REATTACH_HOME"
DIGITS = 12
"""So much of a digest names answers to a pause that are on their way."""


def add_journal(parser: argparse.ArgumentParser) -> None:
    """Add `--journal`."""
    parser.add_argument(
        "--journal",
        metavar="PATH",
        help=f"what remembers: a SQLite file, ….jsonl, postgresql://… (default: journal.db in ${HOME} or the user's data folder)",
    )


def place(args: argparse.Namespace, *, make: bool) -> str:
    """Return the journal's path; its default folder is made, for this user alone, if `make`.

    Raises:
        Declined: The data folder is not known, or cannot be made.
    """
    if args.journal is not None:
        return str(args.journal)
    folder = Path(os.environ[HOME]) if os.environ.get(HOME) else _data_folder()
    if make and not folder.is_dir():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise exits.Declined(
                f"the folder {str(folder)!r} cannot be made ({error.strerror}). Name a journal with --journal.",
                exits.NOT_KNOWN,
            ) from error
    return str(folder / "journal.db")


def _data_folder() -> Path:
    try:
        from platformdirs import user_data_path
    except ImportError as error:
        raise exits.Declined(
            f"the user's data folder is found by platformdirs, which is not installed. Install it with: "
            f"pip install 'reattach[cli]', or name a journal with --journal or ${HOME}"
        ) from error
    return user_data_path("reattach", appauthor=False)


def is_address(path: str) -> bool:
    """Return whether a journal's name is that of a database, not of a file."""
    return "://" in path


@contextmanager
def opened(args: argparse.Namespace, *, make: bool) -> Iterator[Store | None]:
    """Have the journal open. None: there is none yet, and this command makes none.

    Raises:
        Declined: The path that was named has no journal, and this command makes none.
        ReattachError: It cannot be opened.
    """
    path = place(args, make=make)
    if not make and not is_address(path) and not os.path.exists(path):
        if args.journal is not None:
            raise exits.Declined(f"there is no journal {path!r}")
        yield None
        return
    try:
        store = open_store(path)
    except ValueError as error:
        raise exits.Declined(str(error)) from error
    damage = open_journal(store)
    if damage is not None:
        print(visible.line(exits.words_of(damage)), file=sys.stderr)
    try:
        yield store
    finally:
        store.close()


def find(store: Store, which: str, *, url: str | None = None, profile: str | None = None) -> RunRow | None:
    """Return the run that a person means by an id, a key or the start of either, in this order; None if nothing matches.

    Raises:
        Declined: Several match.
    """
    rows = store.rows(None if url is None else server(url), profile)
    # A key names a job; the run that is meant is its newest, since the ones before were answered.
    for matches in (
        [row for row in rows if row.run_id == which],
        [row for row in rows if row.key == which],
        [row for row in rows if any(known.startswith(which) for known in (row.run_id or "", row.key or "", name(row)))],
    ):
        if len(matches) == 1:
            by_id = (matches[0].run_id or "").startswith(which)
            return matches[0] if by_id else jobs.newest(store, matches[0])
        if matches:
            several = ", ".join(name(row) + (f" of {row.server}" if url is None else "") for row in matches[:5])
            more = f" and {len(matches) - 5} more" if len(matches) > 5 else ""
            raise exits.Declined(f"{which!r} is the start of several runs: {several}{more}. Say more of it.")
    return None


def locate(store: Store, args: argparse.Namespace) -> tuple[str, str, RunRow | None]:
    """Return the server, the profile and, where the journal knows it, the row of the run that `args` mean.

    Raises:
        Declined: The journal does not know it and no server was named, or several match.
    """
    row = find(store, args.which, url=args.url, profile=args.profile)
    if row is not None:
        return row.server, row.profile, row
    if args.url is None:
        if "://" in args.which:
            raise exits.Declined(
                f"{args.which!r} is a server; name the run, too: reattach {args.command} {args.which} RUN"
            )
        raise exits.Declined(
            f"the journal knows no run {args.which!r}; give its server, too: reattach {args.command} URL {args.which}"
        )
    return args.url, args.profile or "native", None


def known(store: Store | None, which: str) -> RunRow:
    """Return the run that is meant, which must be in the journal.

    Raises:
        Declined: It is not, or several match.
    """
    row = None if store is None else find(store, which)
    if row is None:
        raise exits.Declined(f"the journal knows no run {which!r}; reattach runs --all lists what it knows")
    return row


def server(url: str) -> str:
    """Return a server's address as the journal names it.

    Raises:
        Declined: It is no address.
    """
    try:
        return address(url)
    except ValueError as error:
        raise exits.Declined(str(error)) from error


def name(row: RunRow) -> str:
    """Return what a person would type for a run: its key, else its id; for answers on their way the start of their digest."""
    return row.key or row.run_id or (row.request_sha256 or "-")[:DIGITS]


def unanswered(row: RunRow) -> bool:
    """Whether this is a response to a pause whose create was not answered: it has neither key nor id."""
    return row.key is None and row.run_id is None
