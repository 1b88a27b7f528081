"""Several processes on one journal (report B77), and one that dies: leases, fencing, marks, forks."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from reattach.stores.base import Busy, Lease
from reattach.stores.leases import current_holder
from reattach.stores.sqlite import SqliteStore
from reattach.testing.stores import PROFILE, SERVER

CHILD = Path(__file__).with_name("child_works.py")


@contextmanager
def child(path: Path, what: str, number: int = 0):
    process = subprocess.Popen(
        [sys.executable, str(CHILD), str(path), what, str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def several(path: Path, count: int, what: str, number: int) -> list[int]:
    with ExitStack() as stack:
        children = [stack.enter_context(child(path, what, number)) for _ in range(count)]
        told = [each.communicate(timeout=300)[0] for each in children]
        assert [each.returncode for each in children] == [0] * count
    return [int(each) for each in told]


def all_are_there(path: Path, count: int, number: int) -> None:
    store = SqliteStore(path)
    store.open()
    rows = store.rows()
    assert len(rows) == count
    for row in rows:
        assert [entry.position for entry in store.read(row.run, 0, number + 1)] == list(range(1, number + 1))
    store.close()


def test_processes_that_begin_and_write_at_once_lose_nothing(path):
    """B77: they make the file together, commit side by side, see no error, and none waits for long."""
    longest = several(path, 4, "commits", 25)
    assert max(longest) < 10_000, "ms; the store would have given up by then"
    all_are_there(path, 4, 25)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_eight_processes_with_two_hundred_commits_each_lose_nothing(path):
    """B77, as it is written."""
    longest = several(path, 8, "commits", 200)
    assert max(longest) < 10_000
    all_are_there(path, 8, 200)


def test_processes_that_take_each_others_run_leave_no_hole(path):
    """Whoever owns it at a moment writes the next event: each position once, whoever wrote it."""
    kept = several(path, 3, "contends", 60)
    assert sum(kept) == 60
    all_are_there(path, 1, 60)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_eight_processes_that_take_each_others_run_leave_no_hole(path):
    """The same with as many as B77 has, and the write lock is never waited for too long."""
    kept = several(path, 8, "contends", 400)
    assert sum(kept) == 400
    all_are_there(path, 1, 400)


def test_a_killed_holder_is_replaced_at_once_even_before_it_is_reaped(path, store):
    """Its time is not over, and its parent has not asked for it yet: it is a zombie, and can write nothing."""
    with child(path, "holds") as process:
        assert process.stdout.readline() == "held\n"
        row = store.find(SERVER, PROFILE, run_id="shared")
        busy = store.lease(row.run, "", current_holder("next"), 15.0)
        assert isinstance(busy, Busy)
        assert busy.holder.pid == process.pid
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert store.holder(row.run, "") is None
        found = store.lease(row.run, "", current_holder("next"), 15.0)
        assert isinstance(found, Lease)
        assert found.token == 2


def test_after_a_kill_at_most_the_event_in_hand_comes_again(path, store):
    """What was noted is there without any flush: one that was told, or the one that was just being told."""
    with child(path, "notes", 100_000) as process:
        told = [process.stdout.readline() for _ in range(500)]
        process.kill()
        told += process.stdout.readlines()
    last = int([line for line in told if line.endswith("\n")][-1])
    row = store.find(SERVER, PROFILE, run_id="shared")
    assert last <= store.applied(row.run, "main") <= last + 1
    found = store.lease(row.run, "main", current_holder("next"), 15.0)
    assert isinstance(found, Lease)
    assert last <= store.applied(row.run, "main") <= last + 1, "the next owner takes it over"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("what", ["forks", "forks in a transaction"])
def test_a_fork_leaves_the_journal_to_the_parent_and_opens_it_anew(path, what):
    """In the child the parent's object is closed and a new one works; the parent's own goes on, its transaction as well."""
    with child(path, what) as process:
        told, _ = process.communicate(timeout=60)
    assert told.splitlines() == ["the child could not use the parent's", "the child committed 20", "the parent went on"]
    store = SqliteStore(path)
    store.open()
    assert {row.run_id: row.committed.position for row in store.rows()} == {"run_child": 20, "shared": 2}
    assert store.applied(store.find(SERVER, PROFILE, run_id="shared").run, "main") == 1
    store.close()
