"""Two owners and one journal, any interleaving: the rules of the two-process model, on the real stores.

Each owner believes what it last saw, as a process does that slept: it commits after where it stood and under the token that it had.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reattach.core.messages import Mark
from reattach.stores import check, memory
from reattach.stores.base import GapNote, Lease, LeaseGone, Refusal, Store, Write
from reattach.stores.jsonl import JsonlStore, logfile
from reattach.stores.leases import current_holder
from reattach.stores.memory import MemoryStore
from reattach.stores.sqlite import SqliteStore
from reattach.testing.stores import PROFILE, SERVER, arrival

STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(
            ["take", "receive", "receive", "settle", "settle", "lose", "gap", "mark", "note", "carry", "group"]
        ),
        st.integers(1, 3),
    ),
    max_size=40,
)


class Owner:
    """One process: what it believes, and what it has under way."""

    def __init__(self, store: Store, run: int, name: str) -> None:
        self.store, self.run, self.name = store, run, name
        self.lease = self.main = Lease(run, "", 0)
        self.at = 0
        self.waiting: list[Write] = []

    def take(self) -> None:
        holder = current_holder(self.name)
        # For no time: the other may take it at once, as after a sleep.
        lease, main = (self.store.lease(self.run, consumer, holder, 0.0) for consumer in ("", "main"))
        assert isinstance(lease, Lease)
        assert isinstance(main, Lease)
        self.lease, self.main, self.waiting = lease, main, []
        self.at = self.store.row(self.run).committed.position

    def receive(self, count: int, *, gap: bool = False) -> None:
        count = 1 if gap else count
        batch = tuple(arrival(self.at + each + 1)._replace(text=f"{self.name} ") for each in range(count))
        write = Write(self.run, self.lease.token, Mark(self.at), Mark(self.at + count), batch)
        if gap:
            write = write._replace(batch=(), gap=GapNote("hole", None, None, None, None))
        self.waiting.append(write)
        self.at += count

    def settle(self, count: int) -> list[int]:
        """Commit the first `count` waiting writes as one group; return the positions that were kept."""
        group, self.waiting = self.waiting[:count], self.waiting[count:]
        told = self.store.commit(group)
        return [
            position
            for write, refused in zip(group, told, strict=True)
            if refused is None
            for position in range(write.prev.position + 1, write.mark.position + 1)
        ]


def play(stores: list[Store], steps: list[tuple[int, str, int]]) -> None:
    """Play the steps and check after each: no hole, nothing twice, no mark back or ahead, a former owner changes nothing."""
    run = stores[0].adopt(SERVER, PROFILE, "run_1").run
    owners = [Owner(store, run, name) for store, name in zip(stores, "AB", strict=True)]
    current: Owner | None = None
    applied = committed = 0
    for number, what, count in steps:
        owner = owners[number]
        match what:
            case "take":
                owner.take()
                current = owner
            case "receive":
                owner.receive(count)
            case "gap":
                owner.receive(1, gap=True)
            case "lose":
                del owner.waiting[:1]  # its commit failed; what was queued behind it is tried all the same
            case "settle" | "group":
                kept = owner.settle(1 if what == "settle" else count)
                assert not kept or owner is current, "a former owner wrote"
                assert kept == list(range(committed + 1, committed + len(kept) + 1)), "a hole, or twice"
            case "mark":
                try:
                    owner.store.mark(owner.main, min(applied + count, committed))
                    assert owner is current
                except LeaseGone:
                    assert owner is not current, "the rightful owner was refused"
            case "note":
                owner.store.note(owner.main, min(applied + count, committed))
            case "carry":
                owner.store.carry()
        position = stores[1 - number].row(run).committed.position
        entries = stores[1 - number].read(run, 0, 10_000)
        assert [entry.position for entry in entries] == list(range(1, position + 1))
        assert position >= committed, "the committed position went back"
        marks = {store.applied(run, "main") for store in stores}
        assert len(marks) == 1, "two processes see two marks"
        (mark,) = marks
        assert applied <= mark <= position
        if owner is not current:
            assert (position, mark) == (committed, applied), "a former owner changed something"
        committed, applied = position, mark


def journals(kind: str, folder: str) -> list[Store]:
    if kind == "memory":
        store = MemoryStore()
        return [store, store]
    if kind == "jsonl":
        shared: list[Store] = [JsonlStore(Path(folder) / "runs.jsonl") for _ in range(2)]
        for each in shared:
            each.open()
        return shared
    stores = [SqliteStore(Path(folder) / "runs.db") for _ in range(2)]
    for store in stores:
        store.open()
        store._writer.execute("PRAGMA synchronous = OFF")  # the rules are asked here, not the disk
    return list(stores)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonl"])
@given(steps=STEPS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_interleaving_of_two_owners_leaves_no_hole(kind, steps):
    """Whoever commits what, when and under whichever token."""
    # The rules are asked here, not the disk.
    with tempfile.TemporaryDirectory() as folder, patch.object(logfile, "_sync", lambda handle: None):
        stores = journals(kind, folder)
        try:
            play(stores, steps)
        finally:
            for store in stores:
                store.close()


@pytest.mark.parametrize(
    ("rule", "steps"),
    [
        ("the token", [(0, "take", 1), (0, "receive", 1), (1, "take", 1), (0, "settle", 1)]),
        ("the predecessor", [(0, "take", 1), (0, "receive", 1), (0, "receive", 1), (0, "lose", 1), (0, "settle", 1)]),
    ],
)
def test_both_rules_are_needed(rule, steps, monkeypatch):
    """The model's result: without the token a former owner writes, without the predecessor there are holes."""

    def lax(write: Write, position: int, token: int | None) -> Refusal | None:
        if rule == "the token":
            return check.refusal(write._replace(token=token or 0), position, token)
        return check.refusal(write._replace(prev=Mark(position)), position, token)

    play(journals("memory", ""), steps)
    monkeypatch.setattr(memory, "refusal", lax)
    with pytest.raises(AssertionError, match=r"a former owner wrote|a hole"):
        play(journals("memory", ""), steps)


def test_a_former_owner_wipes_out_no_mark_of_the_new_one():
    """Its note went into the slots of the new owner, whose mark another process then no longer saw."""
    steps = [(1, "take", 1), (0, "take", 1), (0, "receive", 1), (0, "settle", 1), (0, "note", 1), (1, "note", 1)]
    with tempfile.TemporaryDirectory() as folder:
        stores = journals("sqlite", folder)
        try:
            play(stores, steps)
        finally:
            for store in stores:
                store.close()
