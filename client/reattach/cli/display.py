"""What a command that follows a run shows: the seam, and the choice between people and programs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Protocol, TextIO

from reattach.core.fold import Change
from reattach.model import Connection, Event, Outcome


class Display(Protocol):
    """Where a followed run is shown. Methods may be called from two threads: the loop's and the watcher's.

    What `event` was given is out (written and flushed) when it returns; only then is the event confirmed.
    """

    def waiting(self, text: str) -> None:
        """Say what is being waited for, should it take longer than a second; "" ends it."""
        ...

    def note(self, text: str) -> None:
        """Say something to a person."""
        ...

    def began(self, run_id: str, key: str | None, cursor: str | None) -> None:
        """The run is known; `cursor` is where the journal stands."""
        ...

    def confirmed(self, text: str, events: int) -> None:
        """Show what was confirmed before, where that helps."""
        ...

    def connection(self, connection: Connection) -> None:
        """The connection changed."""
        ...

    def event(self, event: Event, changes: Sequence[Change]) -> None:
        """Show one event."""
        ...

    def ended(self, outcome: Outcome) -> None:
        """The run has settled, and everything was shown."""
        ...

    def failed(self, error: Exception, advice: str) -> None:
        """It cannot be followed; `advice` is the command to type now, or ""."""
        ...

    def tick(self) -> None:
        """A tenth of a second went by."""
        ...

    def close(self) -> None:
        """Nothing more comes."""
        ...


def choose(args: argparse.Namespace) -> Display:
    """Return the display that the flags ask for."""
    out, err = sys.stdout, sys.stderr
    for stream in (out, err):
        unencodable(stream)
    if args.json:
        from reattach.cli.lines import Lines

        return Lines(out, err, quiet=args.quiet)
    from reattach.cli.people import People

    return People(out, err, quiet=args.quiet, color=not args.no_color and not os.environ.get("NO_COLOR"))


def unencodable(stream: TextIO) -> None:
    """Let a stream write what its encoding cannot, such as half of a surrogate pair, as an escape instead of failing."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
