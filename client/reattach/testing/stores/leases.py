"""Leases: one living holder, a dead one replaced, a lost one known."""

from __future__ import annotations

from reattach.stores.base import Busy, Lease
from reattach.stores.leases import current_holder
from reattach.testing.stores.material import DEAD, ELSEWHERE, PROFILE, SERVER, OpenStore


class LeasesContract:
    """Leases: one living holder, a dead one replaced, a lost one known."""

    def test_a_living_holder_keeps_its_lease(self, open_store: OpenStore) -> None:
        """Another client in the same process is told who has it and since when."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        mine = current_holder("mine")
        assert isinstance(store.lease(row.run, "main", mine, 60.0), Lease)
        busy = open_store().lease(row.run, "main", current_holder("other"), 60.0)
        assert isinstance(busy, Busy)
        assert busy.holder == mine
        assert busy == store.holder(row.run, "main")
        assert isinstance(store.lease(row.run, "second", current_holder("other"), 60.0), Lease)

    def test_a_dead_holder_of_this_host_is_replaced_at_once(self, open_store: OpenStore) -> None:
        """With a token one higher."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        first = store.lease(row.run, "main", DEAD, 60.0)
        assert store.holder(row.run, "main") is None
        second = store.lease(row.run, "main", current_holder("next"), 60.0)
        assert isinstance(first, Lease)
        assert second == first._replace(token=first.token + 1)

    def test_a_holder_elsewhere_is_replaced_when_its_time_is_over(self, open_store: OpenStore) -> None:
        """Not before: from here nobody can know."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        store.lease(row.run, "main", ELSEWHERE, 60.0)
        assert isinstance(store.lease(row.run, "main", current_holder("next"), 60.0), Busy)
        store.lease(row.run, "other", ELSEWHERE, 0.0)
        assert isinstance(store.lease(row.run, "other", current_holder("next"), 60.0), Lease)

    def test_renewing_keeps_and_tells_what_was_lost(self, open_store: OpenStore) -> None:
        """A lease whose time was over, but which nobody took, is still one's own."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        kept = store.lease(row.run, "main", ELSEWHERE, 0.0)
        lost = store.lease(row.run, "other", ELSEWHERE, 0.0)
        assert isinstance(kept, Lease)
        assert isinstance(lost, Lease)
        assert isinstance(store.lease(row.run, "other", current_holder("next"), 60.0), Lease)
        assert store.renew([kept, lost], 60.0) == [lost]
        assert isinstance(store.lease(row.run, "main", current_holder("next"), 60.0), Busy)

    def test_a_lease_given_back_is_free_and_its_token_spent(self, open_store: OpenStore) -> None:
        """Giving back a lost one changes nothing."""
        store = open_store()
        row = store.adopt(SERVER, PROFILE, "run_1")
        first = store.lease(row.run, "main", current_holder("one"), 60.0)
        assert isinstance(first, Lease)
        store.release(first)
        assert store.holder(row.run, "main") is None
        second = store.lease(row.run, "main", current_holder("two"), 60.0)
        assert second == first._replace(token=first.token + 1)
        store.release(first)
        assert isinstance(store.holder(row.run, "main"), Busy)
