"""After kill -9 at any step: at most the event in hand again, marked; rows of a transaction exactly once; acks for good."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from client_stage import PATIENCE

CHILD = Path(__file__).with_name("child_killed.py")


def follow(live, journal, face, step, sequence, out):
    done = subprocess.run(
        [
            sys.executable,
            CHILD,
            live.url,
            journal,
            f"killed-{face.name}-{step}-{out.name}",
            face.name,
            step,
            str(sequence),
            out,
        ],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
    )
    return done.returncode, done.stderr


def shown(out):
    return [tuple(map(int, line.split())) for line in out.read_text().splitlines()]


@pytest.mark.parametrize(
    ("step", "again"),
    [
        ("handed", 1),
        pytest.param("inside", 1, marks=pytest.mark.slow),
        ("committed", 0),
        pytest.param("confirmed", 0, marks=pytest.mark.slow),
        ("acked", 0),
    ],
)
def test_after_a_kill_at_most_the_event_in_hand_comes_again_and_is_marked(face, live, tmp_path, step, again):
    """Killed at two events, then followed to the end."""
    journal, out = tmp_path / "runs.db", tmp_path / f"shown-{step}"
    connection = sqlite3.connect(journal)
    connection.execute("CREATE TABLE bill (event TEXT UNIQUE, number INTEGER)")
    connection.close()
    kills = (4, 7)
    for sequence in kills:
        code, err = follow(live, journal, face, step, sequence, out)
        assert code == -9, err
    code, err = follow(live, journal, face, step, -1, out)
    assert code == 0, err

    events = shown(out)
    first = [sequence for sequence, _ in events]
    repeated = [(sequence, marked) for index, (sequence, marked) in enumerate(events) if sequence in first[:index]]
    assert len(repeated) == again * len(kills)
    assert all(marked for _, marked in repeated)
    assert list(dict.fromkeys(first)) == list(range(1, max(first) + 1))
    with sqlite3.connect(journal) as connection:
        numbers = [row[0] for row in connection.execute("SELECT number FROM bill ORDER BY number")]
        (applied,) = connection.execute("SELECT applied FROM reattach_marks WHERE consumer = 'main'").fetchone()
    connection.close()
    assert applied == max(first)
    if step in ("inside", "committed"):
        assert numbers == list(range(1, max(first) + 1))
