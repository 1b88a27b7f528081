"""Pruning: events go, and all that says what the run was stays. What is gone is named."""

from __future__ import annotations

from reattach.core.messages import Mark
from reattach.stores.base import RunRow, Store, Write
from reattach.testing.stores.material import OpenStore, arrival, begun, events, gap, mark_at


class RetentionContract:
    """Pruning: events go, and all that says what the run was stays. What is gone is named."""

    def test_pruned_events_leave_a_gap_that_counts_them(self, open_store: OpenStore) -> None:
        """It is read at the last removed position; row, marks and positions are as before, for every opener."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 2), events(lease, 3, 5)])
        store.mark(main, 5)
        before = store.row(row.run)
        pruned(store, before, 5)
        for journal in (store, open_store()):
            (entry,) = journal.read(row.run, 0, 10)
            told = entry.element["gap"]
            assert (entry.position, entry.element["kind"], entry.element["cursor"]) == (5, "gap", "e1.5")
            assert (told["reason"], told["after"], told["until"], told["missing"]) == ("expired", None, "e1.5", 5)
            assert journal.read(row.run, 5, 10) == journal.newest(row.run, 10) == []
            assert journal.row(row.run)._replace(updated_at=before.updated_at) == before
            assert journal.applied(row.run, "main") == 5

    def test_only_whole_commits_up_to_a_position_go(self, open_store: OpenStore) -> None:
        """What comes behind it is read as before, and never less than was asked to stay."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 2), events(lease, 3, 5), events(lease, 6, 7)])
        pruned(store, row, 5)
        first, *others = store.read(row.run, 0, 10)
        assert first.element["gap"]["missing"] == first.position == 5
        assert [(each.position, each.element["id"]) for each in others] == [(6, "e6"), (7, "e7")]
        assert [each.position for each in store.read(row.run, 3, 1)][:1] == [5]
        assert [each.element["id"] for each in store.newest(row.run, 10)] == ["e6", "e7"]
        assert store.commit([events(lease, 8, 8)]) == [None]

    def test_pruning_again_takes_up_the_gap(self, open_store: OpenStore) -> None:
        """One gap, that counts all; pruning what is pruned changes nothing."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 3), events(lease, 4, 6)])
        pruned(store, row, 3)
        pruned(store, row, 6)
        again = store.read(row.run, 0, 10)
        pruned(store, row, 6)
        assert store.read(row.run, 0, 10) == again
        assert [(each.position, each.element["gap"]["missing"]) for each in again] == [(6, 6)]

    def test_a_gap_among_what_is_pruned_makes_the_number_unknown(self, open_store: OpenStore) -> None:
        """Nobody knows how many the server's gap stood for; its snapshot is gone, too."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 2), gap(lease, 3)])
        stands = store.row(row.run)
        behind = Write(lease.run, lease.token, stands.committed, mark_at(13)._replace(position=4), (arrival(13),))
        assert store.commit([behind]) == [None]
        pruned(store, row, 4)
        (entry,) = store.read(row.run, 0, 10)
        assert (entry.position, entry.element["gap"]["missing"], entry.element["gap"]["snapshot"]) == (4, None, None)
        assert store.row(row.run).incarnation == stands.incarnation

    def test_a_run_of_many_commits_is_pruned_in_steps(self, open_store: OpenStore) -> None:
        """However many steps a store makes of it, each leaves a journal that is whole."""
        store = open_store()
        row, lease, _ = begun(store)
        for number in range(1, 7):
            mark = Mark(number, "e1", number, f"e{number}", f"e1.{number}")
            batch = (arrival(number, "x" * (1 << 20)),)
            assert store.commit([Write(lease.run, lease.token, mark_at(number - 1), mark, batch)]) == [None]
        steps = 1
        while store.prune(row.run, 6):
            steps += 1
            (found, *_) = store.read(row.run, 0, 1)
            assert found.element["gap"]["missing"] == found.position
            assert [each.position for each in store.read(row.run, found.position, 1)] == [found.position + 1]
            assert steps < 100
        assert [each.element["gap"]["missing"] for each in store.read(row.run, 0, 20)] == [6]

    def test_compacting_ends_and_changes_no_content(self, open_store: OpenStore) -> None:
        """With and without anything to give back."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 2)])
        other, other_lease, _ = begun(store, "run_2")
        store.commit([events(other_lease, 1, 1)])
        pruned(store, row, 2)
        before = store.read(row.run, 0, 10), store.rows()
        for _ in range(3):
            steps = 0
            while store.compact():
                steps += 1
                assert steps < 10_000
        assert (store.read(row.run, 0, 10), store.rows()) == before
        assert [each.element["id"] for each in open_store().read(other.run, 0, 10)] == ["e1"]


def pruned(store: Store, row: RunRow, upto: int) -> None:
    """Prune a run, step by step."""
    for _ in range(100):
        if not store.prune(row.run, upto):
            return
    raise AssertionError("pruning did not come to an end")
