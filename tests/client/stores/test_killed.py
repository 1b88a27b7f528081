"""Killed at every step (reports B74): what was told durable is there, and what is there is whole."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from reattach.stores.base import Lease
from reattach.stores.leases import current_holder
from reattach.stores.sqlite import SqliteStore
from reattach.testing.stores import PROFILE, SERVER, events

CHILD = Path(__file__).with_name("child_killed.py")


def killed_at(path: Path, number: int, instructions: int) -> list[str]:
    """Run the child until it kills itself at its n-th step; return what it had told."""
    done = subprocess.run(
        [sys.executable, str(CHILD), str(path), str(number), str(instructions)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode in (0, -9), done.stderr
    return done.stdout.splitlines()


def is_whole(path: Path, told: list[str]) -> None:
    """Check the journal of a killed child against what it had told, then go on with it as the next process would."""
    last = {line.split()[0]: int(line.split()[1]) for line in told if " " in line}
    store = SqliteStore(path)
    store.open()
    row = store.find(SERVER, PROFILE, key="k")
    if "intended" in told:
        assert row is not None
    if "created" in told:
        assert row is not None
        assert (row.run_id, row.request) == ("run_1", None)
    if row is not None and row.run_id is not None:
        position = row.committed.position
        assert position >= last.get("committed", 0), "a commit that was told is not there"
        assert position in (0, 1, 41, 44, 45), "a commit is there in part"
        entries = store.read(row.run, 0, 1000)
        assert [entry.position for entry in entries] == list(range(1, position + 1)), "the journal has a hole"
        assert row.committed.cursor == (None if not position else f"e1.{position}" if position < 45 else "e1.54")
        applied = store.applied(row.run, "main")
        assert last.get("applied", 0) <= applied <= position
        assert applied >= last.get("billed", 0)
        assert (applied >= 44) == bool(billed(path)), "the user's row and its mark are not of one transaction"
        lease = store.lease(row.run, "", current_holder("next"), 60.0)
        assert isinstance(lease, Lease), "a dead holder is replaced at once"
        if position < 45:
            assert store.commit([events(lease, position + 1, position + 1)]) == [None]
    store.close()


def billed(path: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(path)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'bill'").fetchone():
            return []
        return connection.execute("SELECT event FROM bill").fetchall()


def test_killed_at_any_statement_the_journal_is_whole(tmp_path):
    """B74: at each fifth statement of a whole life, from making the file to closing it."""
    assert every(tmp_path, step=5, instructions=1_000_000) > 15


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_at_every_statement_the_journal_is_whole(tmp_path):
    """B74: at every one."""
    assert every(tmp_path, step=1, instructions=1_000_000) > 60


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_inside_any_statement_the_journal_is_whole(tmp_path):
    """B74: in the middle of SQLite's work, every few instructions."""
    assert every(tmp_path, step=3, instructions=10) > 80


def every(folder: Path, *, step: int, instructions: int) -> int:
    """Kill at steps 1, 1 + step, … until the child lives to its end; return how many were killed."""
    for number in range(1, 5000, step):
        path = folder / f"{number}.db"
        told = killed_at(path, number, instructions)
        try:
            is_whole(path, told)
        except AssertionError as error:
            raise AssertionError(f"killed at step {number}, having told {told}: {error}") from error
        if told[-1:] == ["done"]:
            return number // step
    raise AssertionError("the child never came to its end")
