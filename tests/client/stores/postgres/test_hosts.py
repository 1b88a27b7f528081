"""Several processes and hosts on one journal in PostgreSQL (report B77): leases by the server's clock, fencing, forks."""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from reattach.stores.base import Busy, Lease
from reattach.stores.leases import current_holder
from reattach.stores.postgres import PostgresStore
from reattach.testing.stores import DEAD, ELSEWHERE, PROFILE, SERVER, begun, events

CHILD = Path(__file__).parents[1] / "child_works.py"
OVER = "UPDATE reattach_leases SET expires_at = '2000-01-01T00:00:00.000000Z'"


@contextmanager
def child(url: str, what: str, number: int = 0):
    process = subprocess.Popen(
        [sys.executable, str(CHILD), url, what, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def several(url: str, count: int, what: str, number: int) -> list[int]:
    with ExitStack() as stack:
        children = [stack.enter_context(child(url, what, number)) for _ in range(count)]
        told = [each.communicate(timeout=120)[0] for each in children]
        assert [each.returncode for each in children] == [0] * count
    return [int(each) for each in told]


def test_processes_that_begin_and_write_at_once_lose_nothing(store, database):
    """B77: they make the tables together, commit side by side, and none sees an error."""
    store.close()
    database.sql(
        "DROP TABLE reattach_meta, reattach_runs, reattach_batches, reattach_marks, reattach_gaps, reattach_leases CASCADE"
    )
    several(database.url, 3, "commits", 12)
    store.open()
    rows = store.rows()
    assert len(rows) == 3
    for row in rows:
        assert [entry.position for entry in store.read(row.run, 0, 99)] == list(range(1, 13))


def test_processes_that_take_each_others_run_leave_no_hole(store, database):
    """Whoever owns it at a moment writes the next event: each position once, whoever wrote it."""
    kept = several(database.url, 3, "contends", 24)
    row = store.find(SERVER, PROFILE, run_id="shared")
    assert [entry.position for entry in store.read(row.run, 0, 99)] == list(range(1, 25))
    assert sum(kept) == 24


def test_a_killed_holder_of_this_host_is_replaced_at_once(store, database):
    with child(database.url, "holds") as process:
        assert process.stdout.readline() == "held\n"
        row = store.find(SERVER, PROFILE, run_id="shared")
        busy = store.lease(row.run, "", current_holder("next"), 15.0)
        assert isinstance(busy, Busy)
        assert busy.holder.pid == process.pid
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        found = store.lease(row.run, "", current_holder("next"), 15.0)
        assert isinstance(found, Lease)
        assert found.token == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("what", ["forks", "forks in a transaction"])
def test_a_fork_leaves_the_sessions_to_the_parent_and_opens_its_own(store, database, what):
    with child(database.url, what) as process:
        told, _ = process.communicate(timeout=60)
    assert told.splitlines() == ["the child could not use the parent's", "the child committed 20", "the parent went on"]
    assert {row.run_id: row.committed.position for row in store.rows()} == {"run_child": 20, "shared": 2}
    assert store.applied(store.find(SERVER, PROFILE, run_id="shared").run, "main") == 1


@pytest.mark.parametrize("ahead", [3600.0, -3600.0], ids=["ahead", "behind"])
def test_a_host_whose_clock_is_wrong_takes_nothing_early_and_nothing_late(store, database, monkeypatch, ahead):
    """The server's clock alone says when a lease is over."""
    row = store.adopt(SERVER, PROFILE, "run_1")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + ahead)
    assert isinstance(store.lease(row.run, "main", ELSEWHERE, 60.0), Lease)
    assert isinstance(store.lease(row.run, "main", current_holder("next"), 60.0), Busy)
    assert store.holder(row.run, "main") is not None
    database.sql(OVER)
    assert store.holder(row.run, "main") is None
    assert isinstance(store.lease(row.run, "main", current_holder("next"), 60.0), Lease)


def test_another_machine_of_the_same_name_is_not_taken_for_a_dead_one(store):
    """Names are given twice in a fleet; on one host another boot would mean that the holder is gone."""
    row = store.adopt(SERVER, PROFILE, "run_1")
    twin = current_holder("twin")._replace(boot="another/pid:[1]", pid=DEAD.pid)
    assert isinstance(store.lease(row.run, "main", twin, 60.0), Lease)
    assert isinstance(store.lease(row.run, "main", current_holder("next"), 60.0), Busy)


def test_of_many_who_take_a_free_lease_one_has_it(store, database):
    """The first one ever, too: there is no row to lock yet."""
    row = store.adopt(SERVER, PROFILE, "run_1")
    stores = [PostgresStore(database.url) for _ in range(4)]
    for each in stores:
        each.open()
    for consumer in ("", "main", "other"):
        start = threading.Barrier(len(stores))

        def take(each, consumer=consumer, start=start):
            start.wait(10)
            return each.lease(row.run, consumer, current_holder(f"client {id(each)}"), 60.0)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            found = list(pool.map(take, stores))
        assert sum(isinstance(each, Lease) for each in found) == 1
    for each in stores:
        each.close()


def test_a_host_that_was_taken_over_writes_nothing_more(store, database):
    """Not an event, not a mark, not a note, and it learns so when it renews."""
    other = PostgresStore(database.url)
    other.open()
    row, _, _ = begun(other, "run_0")
    row = other.adopt(SERVER, PROFILE, "run_1")
    lease = other.lease(row.run, "", ELSEWHERE, 60.0)
    main = other.lease(row.run, "main", ELSEWHERE, 60.0)
    assert other.commit([events(lease, 1, 3)]) == [None]
    other.note(main, 2)
    database.sql(OVER)
    taken = store.lease(row.run, "", current_holder("next"), 60.0)
    assert isinstance(taken, Lease)
    assert isinstance(store.lease(row.run, "main", current_holder("next"), 60.0), Lease)
    assert store.commit([events(taken, 4, 4)]) == [None]
    assert other.commit([events(lease, 4, 4)])[0].why == "fenced"
    other.carry()
    assert store.applied(row.run, "main") == 0
    assert other.renew([lease, main], 60.0) == [lease, main]
    assert [entry.position for entry in store.read(row.run, 0, 9)] == [1, 2, 3, 4]
    other.close()
