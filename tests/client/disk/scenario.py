"""A journal's whole life as calls of its store, and what must be true of its file whenever that life was cut short."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from reattach.stores.base import Intent, Lease, Store, StoreFailed
from reattach.stores.inspection import inspect
from reattach.stores.jsonl import JsonlStore, compaction
from reattach.stores.leases import current_holder
from reattach.stores.sqlite import SqliteStore
from reattach.testing.stores import PROFILE, SERVER, events, gap

T = TypeVar("T")
ENDS = (0, 1, 41, 44, 45)
"""Where a commit of the life ends: the journal stands at one of these, or a commit is there in part."""


def journal(kind: str, folder: Path) -> SqliteStore | JsonlStore:
    return SqliteStore(folder / "runs.db") if kind == "sqlite" else JsonlStore(folder / "runs.jsonl")


def live(store: SqliteStore | JsonlStore, told: Callable[[str], None], again: Callable[[], bool]) -> None:
    """Live it. What fails is checked to have changed nothing and, while `again` says so, done once more."""

    def state() -> Any:
        rows = store.rows()
        return rows, [store.read(row.run, 0, 1_000) for row in rows]

    def must(work: Callable[[], T]) -> T:
        before = state()
        try:
            return work()
        except StoreFailed as error:
            told(f"failed {type(error).__name__}: {error}")
            assert state() == before, "a failed call changed something"
            if not again():
                raise
            return work()

    try:
        store.open()
    except StoreFailed as error:
        told(f"failed {error}")
        if not again():
            raise
        store.open()
    told("opened")
    intent, _ = must(lambda: store.intend(Intent(SERVER, PROFILE, "k", "{}", "sha")))
    told("intended")
    must(lambda: store.created(intent.run, run_id="run_1", session_id=None, status="running"))
    told("created")
    row = must(lambda: store.adopt(SERVER, PROFILE, "run_1"))
    holder = current_holder("test")
    lease = must(lambda: store.lease(row.run, "", holder, 60.0))
    main = must(lambda: store.lease(row.run, "main", holder, 60.0))
    assert isinstance(lease, Lease)
    assert isinstance(main, Lease)
    position = 0
    for size in (1, 40, 3):
        first, last = position + 1, position + size
        assert must(lambda first=first, last=last: store.commit([events(lease, first, last)])) == [None]
        position = last
        told(f"committed {position}")
        store.note(main, position - 1)
        told(f"applied {position - 1}")
    assert must(lambda: store.commit([gap(lease, position + 1)])) == [None]
    told(f"committed {position + 1}")
    must(lambda: store.mark(main, position + 1))
    told(f"applied {position + 1}")
    must(lambda: store.prune(row.run, 41))
    told("pruned")
    must(lambda: compacted(store))
    told("compacted")
    must(lambda: store.need(row.run, "repair"))
    told("needed")
    store.close()


def compacted(store: SqliteStore | JsonlStore) -> None:
    if isinstance(store, JsonlStore):
        with store._writing() as opened:  # the file is far too small to be worth it
            while compaction.step(opened, wasted=-(1 << 30)):
                pass
    while store.compact():
        pass


def is_whole(store: Store, told: list[str]) -> None:
    """Check a journal against what was told of it, then go on with it as the next process would."""
    last = {line.split()[0]: int(line.split()[1]) for line in told if line.startswith(("committed", "applied"))}
    store.open()
    row = store.find(SERVER, PROFILE, key="k")
    assert row is not None or "intended" not in told, "an intent that was told is not there"
    if "created" in told:
        assert row is not None
        assert (row.run_id, row.request) == ("run_1", None)
    if row is not None and row.run_id is not None:
        position = row.committed.position
        assert position >= last.get("committed", 0), "a commit that was told is not there"
        assert position in ENDS, f"a commit is there in part: {position}"
        entries = store.read(row.run, 0, 1_000)
        first = entries[0].position if entries else 1
        assert first in (1, 41), "pruned in part"
        assert "pruned" not in told or first == 41
        assert [entry.position for entry in entries] == list(range(first, position + 1)), "the journal has a hole"
        assert row.committed.cursor == (None if not position else f"e1.{position}" if position < 45 else "e1.54")
        applied = store.applied(row.run, "main")
        assert last.get("applied", 0) <= applied <= position
        assert "needed" not in told or row.needs == "repair"
        lease = store.lease(row.run, "", current_holder("next"), 60.0)
        assert isinstance(lease, Lease), "a dead holder is replaced at once"
        if position < 45:
            assert store.commit([events(lease, position + 1, position + 1)]) == [None]
    store.close()
    assert inspect(store.name).violations == ()
