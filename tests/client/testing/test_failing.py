"""The store that fails and lags on demand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from reattach.stores.base import StoreFailed, StoreLocked
from reattach.stores.memory import MemoryStore
from reattach.testing.failing import FailingStore
from reattach.testing.stores import begun, events


@pytest.fixture
def store() -> FailingStore:
    return FailingStore(MemoryStore())


def test_the_named_call_fails_and_changes_nothing(store):
    """The second commit, counted from now; the first and the third are kept."""
    row, lease, _ = begun(store)
    store.fail("commit", at=2)
    assert store.commit([events(lease, 1, 1)]) == [None]
    with pytest.raises(StoreFailed, match="no space left on device"):
        store.commit([events(lease, 2, 2)])
    assert store.row(row.run).committed.position == 1
    assert store.commit([events(lease, 2, 2)]) == [None]
    assert store.calls["commit"] == 3


def test_several_fail_in_a_row_with_the_error_that_was_asked_for(store):
    store.fail("carry", StoreLocked("busy"), times=2)
    for _ in range(2):
        with pytest.raises(StoreLocked, match="busy"):
            store.carry()
    store.carry()


def test_all_fail_until_it_is_healed(store):
    """An error can be made anew for each."""
    store.fail("rows", lambda: StoreFailed("I/O"), times=None)
    seen = set()
    for _ in range(3):
        with pytest.raises(StoreFailed) as caught:
            store.rows()
        seen.add(caught.value)
    assert len(seen) == 3
    store.heal("commit")
    with pytest.raises(StoreFailed):
        store.rows()
    store.heal()
    assert store.rows() == []


def test_a_lagging_call_waits_for_the_test(store):
    """It is seen at the gate, has done nothing yet, and goes on when the gate is opened; later ones pass."""
    row, lease, _ = begun(store)
    gate = store.lag("commit", times=None)
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(store.commit, [events(lease, 1, 1)])
        assert gate.reached.wait(10)
        assert store.row(row.run).committed.position == 0
        assert not told.done()
        gate.open()
        assert told.result(10) == [None]
    assert store.commit([events(lease, 2, 2)]) == [None]


def test_a_gate_that_nobody_opens_ends_the_test(store):
    store.lag("rows", limit=0.01)
    with pytest.raises(TimeoutError, match="nobody opened the gate"):
        store.rows()


def test_it_may_lag_and_then_fail(store):
    gate = store.lag("rows")
    store.fail("rows")
    gate.open()
    with pytest.raises(StoreFailed):
        store.rows()


@pytest.mark.parametrize("wrong", ["comit", "_do", "name"])
def test_a_method_that_is_none_is_said_at_once(store, wrong):
    """A fault that never fires would make a test green."""
    with pytest.raises(ValueError, match="no method of a store"):
        store.fail(wrong)


def test_it_is_called_by_the_name_of_the_store_inside(store):
    assert (store.name, store.shared) == (":memory:", False)
