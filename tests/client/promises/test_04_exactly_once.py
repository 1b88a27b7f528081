"""Promise 4: a handler that writes through the journal's transaction sees each event exactly once, killed wherever it may be.

The handler is examples/03_exactly_once.py, as its reader runs it.
"""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from reattach_mockserver.live import LiveServer

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[2] / "examples" / "03_exactly_once.py"


@pytest.fixture
def server():
    """One for each test: the example has a key of its own."""
    with LiveServer() as live:
        yield live


def run(server, journal, at):
    """Run the example until it is killed at its n-th step; return what it printed, None if it was killed."""
    done = subprocess.run(
        [sys.executable, HERE / "child_example.py", str(EXAMPLE), str(at), server.url, str(journal)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode in (0, -9), done.stderr
    return done.stdout if done.returncode == 0 else None


def calls(server, journal):
    """The ids of all tool calls in the server's log of the only run that the journal knows."""
    with closing(sqlite3.connect(journal)) as connection:
        ((run_id,),) = connection.execute("SELECT run_id FROM reattach_runs").fetchall()
    logged = [json.loads(body) for body in server.log(run_id)]
    return [event["id"] for event in logged if event["type"] == "tool.call"]


def test_killed_again_and_again_each_call_is_billed_once(server, tmp_path):
    """Promise 4: the same journal over many deaths, each somewhat later in its process's life than the one before."""
    kills = 0
    for at in range(12, 2_000, 23):
        printed = run(server, tmp_path / "runs.db", at)
        if printed is not None:
            break
        kills += 1
    assert kills > 5
    assert printed is not None
    assert [line.split()[0] for line in printed.splitlines()] == calls(server, tmp_path / "runs.db")


PARTS = 4  # of the kills, so that several workers share them


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_every_single_step_each_call_is_billed_once(part, tmp_path):
    """Promise 4: at each line of the example and each statement of the journal, then followed to the end."""
    for at in range(1 + 2 * part, 5_000, 2 * PARTS):
        with LiveServer() as server:
            journal = tmp_path / f"{at}.db"
            lived = run(server, journal, at)
            printed = lived if lived is not None else run(server, journal, 0)
            assert printed is not None
            billed = [line.split()[0] for line in printed.splitlines()]
            assert billed == calls(server, journal), f"killed at step {at}"
        if lived is not None:
            break
    assert at > 100
