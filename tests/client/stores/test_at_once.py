"""A commit in one statement: when it is the way, and that what it keeps and refuses is what the long way would."""

from __future__ import annotations

import pytest

from reattach.core.messages import Mark
from reattach.stores.base import Write
from reattach.stores.sqlite import at_once
from reattach.stores.sqlite.store import SqliteStore
from reattach.testing.stores import arrival, begun, events, gap, mark_at


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "runs.db")
    store.open()
    yield store
    store.close()


def said(store, writes):
    """Return what was kept of a group, and its statements; what a trigger runs is told as what fired it."""
    found = []
    store._writer.set_trace_callback(found.append)
    try:
        return store.commit(writes), [each.split()[0] for each in dict.fromkeys(found)]
    finally:
        store._writer.set_trace_callback(None)


def test_a_burst_is_one_statement(store):
    """Each that more would be costs the interpreter's lock twice, from a loop that is busy."""
    row, lease, _ = begun(store)
    kept, statements = said(store, [events(lease, 1, 3), events(lease, 4, 4), events(lease, 5, 9)])
    assert (kept, statements) == ([None] * 3, ["INSERT"])
    assert store.row(row.run).committed == mark_at(9)
    assert [entry.position for entry in store.read(row.run, 0, 100)] == [*range(1, 10)]


def test_the_mark_that_a_reader_noted_goes_with_it(store):
    """Durable with the commit, as every commit carries what was noted."""
    row, lease, (reader,) = begun(store, "run_1", "main")
    store.commit([events(lease, 1, 3)])
    store.note(reader, 2)
    _, statements = said(store, [events(lease, 4, 4)])
    assert statements == ["INSERT"]
    assert store._writer.execute("SELECT applied FROM reattach_marks WHERE run = ?", (row.run,)).fetchall() == [(2,)]
    assert not store._marks.waiting()


@pytest.mark.parametrize("number", [at_once.MOST, at_once.MOST + 1], ids=["most", "more"])
def test_more_than_one_statement_takes_goes_the_long_way(store, number):
    """Nothing is lost by it but time."""
    row, lease, _ = begun(store)
    kept, statements = said(store, [events(lease, at, at) for at in range(1, number + 1)])
    assert kept == [None] * number
    assert (statements == ["INSERT"]) is (number == at_once.MOST)
    assert store.row(row.run).committed == mark_at(number)


@pytest.mark.parametrize("wrong", ["token", "place"])
def test_one_that_may_not_be_kept_takes_nobody_along(store, wrong):
    """The others of its group are kept, and it is said why it was not."""
    row, lease, _ = begun(store)
    good, bad = events(lease, 1, 2), events(lease, 3, 4)
    bad = bad._replace(token=lease.token + 1) if wrong == "token" else events(lease, 4, 5)
    (first, second), _ = said(store, [good, bad])
    assert first is None
    assert second.why == ("fenced" if wrong == "token" else "stale")
    assert store.row(row.run).committed == mark_at(2)


def test_a_run_that_is_gone_is_refused(store):
    """Nothing of it is in the journal afterwards."""
    _, lease, _ = begun(store)
    store._writer.execute("DELETE FROM reattach_runs")
    (refused,), _ = said(store, [events(lease, 1, 2)])
    assert refused is not None
    assert store._writer.execute("SELECT count(*) FROM reattach_batches").fetchone() == (0,)


def test_a_gap_and_a_place_alone_go_the_long_way(store):
    """A gap begins an incarnation; with keep="cursor" the commits before are trimmed."""
    row, lease, _ = begun(store)
    bare = Write(lease.run, lease.token, Mark(), mark_at(1), (arrival(1),), bare=True)
    _, statements = said(store, [bare])
    assert statements[0] == "BEGIN"
    _, statements = said(store, [gap(lease, 2)])
    assert statements[0] == "BEGIN"
    assert store.row(row.run).incarnation == 2


def test_the_view_is_in_no_file(store):
    """Another connection of the same journal does not see it: it is this one's own."""
    names = "SELECT name FROM sqlite_master WHERE name LIKE 'reattach_commit%'"
    assert store._reader.execute(names).fetchall() == []
