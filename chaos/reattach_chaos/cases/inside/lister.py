"""Our own client where a case is about listing: `main([URL, RUN, SESSION, JOURNAL])` asks for the session's runs, then follows RUN.

No command of `reattach` asks a server for a session's runs; the library does. Lines and exit codes are those of `reattach follow`.
"""

import os
import sys
import time
from collections.abc import Sequence

from reattach import Client, ReattachError
from reattach.cli import main as follow

TRIES = 20
PAUSE_S = 1.0  # what a busy server wishes for at most, here


def main(argv: Sequence[str]) -> int:
    """List, then follow; return the exit code."""
    url, run, session, journal = argv
    with Client(url, journal, token=os.environ.get("REATTACH_TOKEN") or None) as client:
        listed = _listed(client, session)
    if run not in listed:
        sys.stderr.write(f"{run} is not among the runs of {session}: {listed}\n")
        return 1
    return follow(["follow", url, run, "--json", "--journal", journal])


def _listed(client: Client, session: str) -> list[str]:
    """Return the session's runs. A list that was refused is asked for again, as an application would: it follows nothing yet."""
    for _ in range(TRIES):
        try:
            return [each.id for each in client.session_runs(session)]
        except ReattachError as error:
            sys.stderr.write(f"{error}\n")
            time.sleep(PAUSE_S)
    return []
