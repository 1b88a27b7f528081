"""Giving room back in a SQLite file that other processes use meanwhile."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress

from reattach.stores.sqlite import SqliteStore, compaction
from reattach.testing.stores import begun, events


def test_pages_that_another_process_frees_meanwhile_are_no_fault(tmp_path, monkeypatch):
    """Between the looks at how much is free: the step moved some, and is not taken for one on a full disk."""
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    store.open()
    _, lease, _ = begun(store, "run_1")
    store.commit([events(lease, 1, 9)])
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        for name in ("mine", "theirs", "others"):
            other.execute(f"CREATE TABLE {name} (text)")
            other.execute(f"INSERT INTO {name} VALUES (zeroblob(40 * 4096))")
        other.execute("DROP TABLE mine")
        asked = compaction._number

        def number(connection: sqlite3.Connection, pragma: str) -> int:
            found = asked(connection, pragma)
            if pragma == "freelist_count":
                with suppress(sqlite3.OperationalError):  # locked: it waits its turn
                    other.execute(drops.pop(0))
            return found

        drops = ["DROP TABLE theirs", "DROP TABLE others", "SELECT 1"]
        monkeypatch.setattr(compaction, "_number", number)
        monkeypatch.setattr(compaction, "STEP_PAGES", 4)
        assert store.compact()
    store.close()
