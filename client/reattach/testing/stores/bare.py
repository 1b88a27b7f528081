"""keep="cursor": places without payload, and going back to the applied mark."""

from __future__ import annotations

from reattach.core.messages import Mark
from reattach.stores.base import Lease, LeaseGone
from reattach.stores.leases import current_holder
from reattach.testing.stores.material import OpenStore, begun, events, gap, mark_at, refused


class BareContract:
    """keep="cursor": places without payload, and going back to the applied mark."""

    def test_a_bare_commit_keeps_the_place_and_nothing_that_was_said(self, open_store: OpenStore) -> None:
        """Cursor and mark are as with any commit; of the event there are its identity and its place."""
        store = open_store()
        row, lease, _ = begun(store)
        assert store.commit([events(lease, 1, 2)._replace(bare=True)]) == [None]
        assert open_store().row(row.run).committed == mark_at(2)
        first, second = store.read(row.run, 0, 10)
        assert (first.position, second.position) == (1, 2)
        assert dict(first.element) == {
            "id": "e1", "type": "text.delta", "kind": "text", "epoch": "e1", "cursor": "e1.1", "sequence": 1,
        }  # fmt: skip

    def test_the_commit_that_holds_the_mark_stays_and_all_behind_it(self, open_store: OpenStore) -> None:
        """Below every consumer's mark a store may drop commits."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        for first, last in ((1, 2), (3, 4), (5, 6), (7, 8)):
            assert store.commit([events(lease, first, last)._replace(bare=True)]) == [None]
            store.mark(main, min(last, 5))
        found = [entry.position for entry in open_store().read(row.run, 0, 20)]
        assert found == list(range(found[0], 9))
        assert found[0] <= 5
        assert store.row(row.run).committed == mark_at(8)

    def test_rewinding_lets_the_same_events_come_again(self, open_store: OpenStore) -> None:
        """From the middle of a commit; up to where the journal stood is known, for every opener, and never less."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 4)._replace(bare=True), events(lease, 5, 6)._replace(bare=True)])
        store.mark(main, 3)
        found = store.rewind(lease, mark_at(3))
        assert (found.committed, found.again_to) == (mark_at(3), 6)
        assert open_store().row(row.run) == found
        assert [entry.position for entry in store.read(row.run, 2, 20)] == [3]
        assert store.applied(row.run, "main") == 3
        assert store.commit([events(lease, 4, 4)._replace(bare=True)]) == [None]
        found = store.rewind(lease, mark_at(3))
        assert (found.committed, found.again_to) == (mark_at(3), 6)

    def test_what_comes_again_ends_where_the_run_does(self, open_store: OpenStore) -> None:
        """Less of it may be left than there was: nobody must wait for the rest."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 6)._replace(bare=True, outcome="{}", status="completed")])
        found = store.rewind(lease, mark_at(3))
        assert (found.outcome, found.highest) == ("{}", 6)
        store.commit([events(lease, 4, 5)._replace(bare=True)])
        assert store.row(row.run).highest == 6
        store.commit([events(lease, 6, 6)._replace(bare=True)])
        store.rewind(lease, mark_at(3))
        store.commit([events(lease, 4, 5)._replace(bare=True, outcome="{}", status="completed")])
        assert open_store().row(row.run).highest == 5

    def test_rewinding_to_the_beginning_keeps_the_epoch(self, open_store: OpenStore) -> None:
        """Else a log that was replaced meanwhile would go unnoticed. Gaps behind the mark come again, too."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 2)._replace(bare=True), gap(lease, 3)])
        found = store.rewind(lease, Mark(epoch="e1"))
        assert (found.committed, found.again_to) == (Mark(epoch="e1"), 3)
        assert store.read(row.run, 0, 10) == []
        assert store.commit([events(lease, 1, 2)._replace(bare=True, prev=found.committed)]) == [None]

    def test_a_gap_that_is_taken_back_ends_nothing(self, open_store: OpenStore) -> None:
        """What stands before it is the newest again, back to the gap before."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 2), gap(lease, 3), events(lease, 4, 4), gap(lease, 5)])
        assert store.newest(row.run, 9) == []
        store.rewind(lease, mark_at(4))
        assert [entry.position for entry in open_store().newest(row.run, 9)] == [4]
        store.rewind(lease, mark_at(2))
        assert [entry.position for entry in open_store().newest(row.run, 9)] == [1, 2]

    def test_a_former_owner_rewinds_nothing(self, open_store: OpenStore) -> None:
        """Fenced like every write."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 4)._replace(bare=True)])
        store.release(lease)
        assert isinstance(store.lease(row.run, "", current_holder("next"), 60.0), Lease)
        with refused(LeaseGone):
            store.rewind(lease, mark_at(2))
        assert (store.row(row.run).committed, store.row(row.run).again_to) == (mark_at(4), 0)
