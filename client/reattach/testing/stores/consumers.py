"""Consumers: each its own mark and its own lease, and nobody else's."""

from __future__ import annotations

from reattach.stores.base import Lease, LeaseGone
from reattach.stores.leases import current_holder
from reattach.testing.stores.material import Noting, OpenStore, begun, events, refused


class ConsumersContract(Noting):
    """Consumers: each its own mark and its own lease, and nobody else's."""

    def test_each_consumer_has_a_mark_of_its_own(self, open_store: OpenStore) -> None:
        """Marked or noted, for this opener and for the next."""
        store = open_store()
        row, lease, (main, billing) = begun(store, "run_1", "main", "billing")
        store.commit([events(lease, 1, 5)])
        store.mark(main, 4)
        self.noted(store, billing, 2)
        for journal in (store, open_store()):
            assert (journal.applied(row.run, "main"), journal.applied(row.run, "billing")) == (4, 2)
            assert journal.consumers(row.run) == {"main": 4, "billing": 2}

    def test_who_ever_took_a_lease_is_a_consumer(self, open_store: OpenStore) -> None:
        """It may have seen an event that it did not confirm; the writer of the events is none, nor is another run's."""
        store = open_store()
        row, _, (billing,) = begun(store, "run_1", "billing")
        begun(store, "run_2", "other")
        assert store.consumers(row.run) == {"billing": 0}
        store.release(billing)
        assert open_store().consumers(row.run) == {"billing": 0}
        assert store.consumers(store.adopt(row.server, row.profile, "run_3").run) == {}

    def test_who_writes_the_events_is_no_consumer(self, open_store: OpenStore) -> None:
        """However often its lease changes hands; else the run would be behind at its mark for ever."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 3)])
        store.mark(main, 3)
        for name in ("second", "third"):
            store.release(lease)
            taken = store.lease(row.run, "", current_holder(name), 60.0)
            assert isinstance(taken, Lease)
            lease = taken
        assert store.commit([events(lease, 4, 4)]) == [None]
        assert store.consumers(row.run) == open_store().consumers(row.run) == {"main": 3}

    def test_taking_one_consumer_over_leaves_the_others(self, open_store: OpenStore) -> None:
        """A new owner of one lease fences the former one's mark, and no other."""
        store = open_store()
        row, lease, (main, billing) = begun(store, "run_1", "main", "billing")
        store.commit([events(lease, 1, 5)])
        store.release(billing)
        successor = store.lease(row.run, "billing", current_holder("next"), 60.0)
        assert isinstance(successor, Lease)
        with refused(LeaseGone):
            store.mark(billing, 3)
        store.mark(main, 3)
        store.mark(successor, 1)
        assert store.renew([main, successor], 60.0) == []
        assert store.consumers(row.run) == {"main": 3, "billing": 1}
