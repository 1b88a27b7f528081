"""One commit is bounded, whatever waits (B77's freezes): counted in writes, events and bytes, not in time."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

import pytest

from reattach.core.messages import Mark
from reattach.runtime import writer as writers
from reattach.runtime.writer import ThreadWriter
from reattach.stores.base import Lease, Refusal, Write
from reattach.stores.memory import MemoryStore
from reattach.testing import FailingStore
from reattach.testing.stores import arrival, begun, mark_at

PATIENCE = 20.0


class Counting(MemoryStore):
    """Remembers the groups that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[Write]] = []

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        self.groups.append(list(writes))
        return super().commit(writes)


def write(lease: Lease, first: int, last: int, text: str = "") -> Write:
    batch = tuple(arrival(number, text) for number in range(first, last + 1))
    return Write(lease.run, lease.token, mark_at(first - 1) if first > 1 else Mark(), mark_at(last), batch)


def gathered(writes: int, size: int, text: str = "") -> tuple[list[list[Write]], list[object]]:
    """Queue writes of so many events each behind one that is held; return the groups and what each was told, in order."""
    store = Counting()
    failing = FailingStore(store)
    _, lease, _ = begun(store)
    gate = failing.lag("commit")
    told: list[object] = []
    done = threading.Event()

    def settled(result: object) -> None:
        told.append(result)
        if len(told) == writes + 1:
            done.set()

    writer = ThreadWriter(failing, lambda work: work())
    writer.commit(write(lease, 1, 1), settled)
    assert gate.reached.wait(PATIENCE)
    for number in range(writes):
        first = 2 + number * size
        writer.commit(write(lease, first, first + size - 1, text), settled)
    gate.open()
    assert done.wait(PATIENCE)
    writer.close()
    return store.groups[1:], told


@pytest.mark.parametrize(
    ("writes", "size", "text"),
    [(1_300, 1, ""), (30, 900, ""), (12, 1, "x" * (1 << 20)), (3, 1, "x" * (5 << 20)), (3, 4_500, "")],
    ids=["many", "many events", "large", "larger than a group", "more events than a group"],
)
def test_what_waits_is_committed_in_bounded_groups_and_in_order(writes, size, text):
    """All of it, each told once; more than one write in a group only below every bound, and never smaller than it must be."""
    groups, told = gathered(writes, size, text)
    assert told == [None] * (writes + 1)
    sent = [each for group in groups for each in group]
    assert [each.mark.position for each in sent] == [1 + size * number for number in range(1, writes + 1)]
    weights = [(len(group), *map(sum, zip(*map(writers._weight, group), strict=True))) for group in groups]
    for number, count, payload in weights:
        assert number <= writers.GROUP
        assert number == 1 or (count <= writers.GROUP_EVENTS and payload <= writers.GROUP_BYTES)
    for (first, count, payload), (_, more, larger) in itertools.pairwise(weights):
        full = first == writers.GROUP or count + more > writers.GROUP_EVENTS or payload + larger > writers.GROUP_BYTES
        assert full, "two groups where one would have done"
