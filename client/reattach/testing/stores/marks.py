"""Applied marks: up and never back, never above what is committed, the next owner's at once."""

from __future__ import annotations

from reattach.stores.base import Lease, LeaseGone
from reattach.stores.leases import current_holder
from reattach.testing.stores.material import DEAD, Noting, OpenStore, begun, events, gap, refused


class MarksContract(Noting):
    """Applied marks: up and never back, never above what is committed, the next owner's at once."""

    def test_a_mark_moves_up_and_never_back(self, open_store: OpenStore) -> None:
        """For every opener."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 5)])
        assert store.applied(row.run, "main") == 0
        store.mark(main, 3)
        store.mark(main, 2)
        assert store.applied(row.run, "main") == open_store().applied(row.run, "main") == 3
        assert store.applied(row.run, "other") == 0

    def test_nothing_is_applied_that_is_not_committed(self, open_store: OpenStore) -> None:
        """Neither by a mark nor by a note."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 2)])
        with refused(ValueError):
            store.mark(main, 3)
        store.note(main, 3)
        store.carry()
        assert store.applied(row.run, "main") <= 2

    def test_a_noted_mark_counts_at_once_and_is_carried(self, open_store: OpenStore) -> None:
        """For this opener, for another, and for the one after `close`."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 5)])
        store.note(main, 1)
        self.noted(store, main, 2)
        assert store.applied(row.run, "main") == open_store().applied(row.run, "main") == 2
        store.commit([events(lease, 6, 6)])
        store.note(main, 4)
        store.close()
        assert open_store().applied(row.run, "main") == 4

    def test_a_noted_mark_is_the_next_owners(self, open_store: OpenStore) -> None:
        """Also if the one who noted it is dead and carried nothing."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 5)])
        main = store.lease(row.run, "main", DEAD, 60.0)
        assert isinstance(main, Lease)
        self.noted(store, main, 4)
        other = open_store()
        assert isinstance(other.lease(row.run, "main", current_holder("next"), 60.0), Lease)
        assert other.applied(row.run, "main") == open_store().applied(row.run, "main") == 4

    def test_a_former_owner_moves_no_mark(self, open_store: OpenStore) -> None:
        """Neither by a mark nor by a note."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 5)])
        store.release(main)
        assert isinstance(open_store().lease(row.run, "main", current_holder("next"), 60.0), Lease)
        with refused(LeaseGone):
            store.mark(main, 3)
        store.note(main, 4)
        store.carry()
        assert store.applied(row.run, "main") == 0

    def test_an_owner_that_does_not_know_yet_moves_no_mark_either(self, open_store: OpenStore) -> None:
        """It slept, was taken over, wakes and confirms: its note is never carried."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 5)])
        main = store.lease(row.run, "main", DEAD, 60.0)
        assert isinstance(main, Lease)
        other = open_store()
        assert isinstance(other.lease(row.run, "main", current_holder("next"), 60.0), Lease)
        store.note(main, 4)
        store.carry()
        store.commit([events(lease, 6, 6)])
        with refused(LeaseGone):
            store.mark(main, 5)
        assert other.applied(row.run, "main") == store.applied(row.run, "main") == 0

    def test_a_gap_keeps_the_marks_before_it(self, open_store: OpenStore) -> None:
        """A new incarnation forgets nothing that was confirmed, and takes new notes."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 3)])
        store.note(main, 2)
        store.commit([gap(lease, 4)])
        assert open_store().applied(row.run, "main") == 2
        self.noted(store, main, 4)
        assert open_store().applied(row.run, "main") == 4
