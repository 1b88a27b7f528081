"""The contract suite of journals: what every `Store` must do, as a class of tests to inherit. For stores of your own, too.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: opened(MyStore(tmp_path / "runs.mine"))     # each call: the same journal, opened once more

Each test names one fact of the law in `reattach.stores.base`; one chapter of it is one file here. Nothing here imports pytest, a
clock or a network; no test waits. What a store does under `kill -9`, on a full disk or with a damaged file cannot be asked from
outside: test it beside this.
"""

from __future__ import annotations

from reattach.testing.stores.bare import BareContract
from reattach.testing.stores.consumers import ConsumersContract
from reattach.testing.stores.events import EventsContract
from reattach.testing.stores.leases import LeasesContract
from reattach.testing.stores.marks import MarksContract
from reattach.testing.stores.material import (
    DEAD,
    ELSEWHERE,
    PROFILE,
    SERVER,
    OpenStore,
    arrival,
    begun,
    events,
    gap,
    mark_at,
    refused,
)
from reattach.testing.stores.openers import OpenersContract
from reattach.testing.stores.retention import RetentionContract
from reattach.testing.stores.runs import RunsContract
from reattach.testing.stores.transactions import TransactionsContract

__all__ = [
    "DEAD",
    "ELSEWHERE",
    "PROFILE",
    "SERVER",
    "OpenStore",
    "StoreContract",
    "arrival",
    "begun",
    "events",
    "gap",
    "mark_at",
    "refused",
]


class StoreContract(
    RunsContract,
    EventsContract,
    MarksContract,
    ConsumersContract,
    LeasesContract,
    RetentionContract,
    BareContract,
    TransactionsContract,
    OpenersContract,
):
    """Inherit it and give a fixture `open_store`, see the module."""
