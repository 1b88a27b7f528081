"""Several openers of one journal, one after the other and at once."""

from __future__ import annotations

from reattach.testing.stores.material import OpenStore, begun, events, mark_at


class OpenersContract:
    """Several openers of one journal, one after the other and at once."""

    def test_another_openers_write_is_noticed(self, open_store: OpenStore) -> None:
        """Where the journal can be shared."""
        store = open_store()
        row, lease, _ = begun(store)
        other = open_store()
        before = other.changed()
        assert other.changed() == before
        store.commit([events(lease, 1, 1)])
        if store.shared:
            assert other.changed() != before
        assert other.row(row.run).committed == mark_at(1)

    def test_closing_twice_and_opening_again_is_fine(self, open_store: OpenStore) -> None:
        """What was committed is there."""
        store = open_store()
        row, lease, _ = begun(store)
        store.commit([events(lease, 1, 1)])
        store.close()
        store.close()
        store.open()
        assert store.row(row.run).committed == mark_at(1)
