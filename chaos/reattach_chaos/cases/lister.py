"""Our own client where a case is about listing: `main([URL, RUN, SESSION, JOURNAL])` asks for the session's runs, then follows RUN.

No command of `reattach` asks a server for a session's runs; the library does. Lines and exit codes are those of `reattach follow`.
"""

import os
import sys
from collections.abc import Sequence

from reattach import Client, ReattachError
from reattach.cli import main as follow


def main(argv: Sequence[str]) -> int:
    """List, then follow; return the exit code."""
    url, run, session, journal = argv
    try:
        with Client(url, journal, token=os.environ.get("REATTACH_TOKEN") or None) as client:
            listed = [each.id for each in client.session_runs(session)]
    except ReattachError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if run not in listed:
        sys.stderr.write(f"{run} is not among the runs of {session}: {listed}\n")
        return 1
    return follow(["follow", url, run, "--json", "--journal", journal])
