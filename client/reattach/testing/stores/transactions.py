"""The user's own transaction, where a journal has SQL: their rows and the mark together, or nothing."""

from __future__ import annotations

from reattach.stores.base import LeaseGone
from reattach.stores.leases import current_holder
from reattach.testing.stores.material import OpenStore, begun, events, refused


class TransactionsContract:
    """The user's own transaction."""

    placeholder = "?"
    """The driver's own."""

    def test_a_transaction_moves_the_mark_or_nothing(self, open_store: OpenStore) -> None:
        """Where the store has SQL; and a former owner gets none."""
        store = open_store()
        row, lease, (main,) = begun(store, "run_1", "main")
        store.commit([events(lease, 1, 2)])
        try:
            transaction = store.begin(main, expected=0)
        except NotImplementedError:
            return
        transaction.execute("CREATE TABLE bill (event TEXT)", ())
        transaction.execute(f"INSERT INTO bill VALUES ({self.placeholder})", ("e1",))
        transaction.commit(1)
        transaction = store.begin(main, expected=1)
        transaction.execute(f"INSERT INTO bill VALUES ({self.placeholder})", ("e2",))
        transaction.rollback()
        assert store.applied(row.run, "main") == 1
        transaction = store.begin(main, expected=1)
        assert transaction.execute("SELECT event FROM bill", ()) == [("e1",)]
        transaction.rollback()
        store.release(main)
        store.lease(row.run, "main", current_holder("next"), 60.0)
        with refused(LeaseGone):
            store.begin(main, expected=1)
