"""A scripted life of a journal in PostgreSQL, and what must be true of it whatever happened to its connections.

Run as a program (address of the journal) it is the process that a test kills; it tells what was durable, a line each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from reattach.stores.base import Intent, StoreFailed
from reattach.stores.leases import current_holder
from reattach.stores.postgres import PostgresStore
from reattach.testing.stores import PROFILE, SERVER, begun, events, gap

TABLE = "CREATE TABLE bill (event text, position bigint)"
ENDS = (0, 1, 41, 44, 45, 46)


def work(store: PostgresStore, told: Callable[[str], None]) -> None:
    """Live: each step must succeed, though its connection may be lost once; only a transaction may have to be begun again."""
    intent, new = store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha"))
    assert new, "an intent is done again, and is still the first"
    told("intended")
    assert store.created(intent.run, run_id="run_1", session_id=None, status="running").run_id == "run_1"
    told("created")
    row, lease, (main,) = begun(store, "run_1", "main")
    position = 0
    for size in (1, 40, 3):
        assert store.commit([events(lease, position + 1, position + size)]) == [None]
        position += size
        told(f"committed {position}")
        store.note(main, position - 1)
    store.carry()
    told(f"applied {position - 1}")
    assert store.renew([lease, main], 60.0) == []
    for _ in range(2):
        if store.applied(row.run, "main") == position:
            break  # the answer to the commit was lost, and nobody could tell: the mark does
        try:
            transaction = store.begin(main, expected=position - 1)
            transaction.execute("INSERT INTO bill VALUES (%s, %s)", (f"e{position}", position))
            transaction.commit(position)
        except StoreFailed:
            continue
    told(f"billed {position}")
    assert store.commit([gap(lease, position + 1)]) == [None]
    told(f"committed {position + 1}")
    store.mark(main, position + 1)
    told(f"applied {position + 1}")
    store.release(main)
    store.release(lease)
    told("released")


def is_whole(store: PostgresStore, told: list[str], billed: list[tuple[str]]) -> None:
    """Check a journal against what its writer had told, then go on with it as the next process would."""
    last = {line.split()[0]: int(line.split()[1]) for line in told if " " in line}
    row = store.find(SERVER, PROFILE, key="k")
    if "intended" in told:
        assert row is not None
    if "created" in told:
        assert row is not None
        assert (row.run_id, row.request) == ("run_1", None)
    if row is None or row.run_id is None:
        return
    position = row.committed.position
    assert position >= last.get("committed", 0), "a commit that was told is not there"
    assert position in ENDS, "a commit is there in part"
    entries = store.read(row.run, 0, 1000)
    assert [entry.position for entry in entries] == list(range(1, position + 1)), (
        "the journal has a hole, or an event twice"
    )
    applied = store.applied(row.run, "main")
    assert max(last.get("applied", 0), last.get("billed", 0)) <= applied <= position
    assert len(billed) == (1 if applied >= 44 else 0), "the user's row and its mark are not of one transaction"


def go_on(store: PostgresStore) -> None:
    """Take over from a writer that died, and write the next event."""
    row = store.find(SERVER, PROFILE, run_id="run_1")
    if row is None:
        return
    lease = store.lease(row.run, "", current_holder("next"), 60.0)
    position = row.committed.position
    assert isinstance(lease, tuple), "a dead holder is replaced at once"
    if position < 45:
        assert store.commit([events(lease, position + 1, position + 1)]) == [None]  # type: ignore[arg-type]


if __name__ == "__main__":
    _store = PostgresStore(sys.argv[1])
    _store.open()
    work(_store, lambda line: print(line, flush=True))
    _store.close()
    print("done", flush=True)
