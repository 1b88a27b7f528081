"""What the contract tests of journals write and expect: events, marks, writes, runs and holders. Values only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reattach.core.messages import Arrival, Mark
from reattach.core.payload import digest_of
from reattach.stores.base import GapNote, Lease, RunRow, Store, Write
from reattach.stores.leases import current_holder

OpenStore = Callable[[], Store]

SERVER, PROFILE = "http://127.0.0.1:8700", "native"
ELSEWHERE = current_holder("elsewhere")._replace(host="another.example", boot="another", pid=7)
DEAD = current_holder("dead")._replace(started="never")
"""This very process number, but of a process that began at another time: it is gone."""


def arrival(number: int, text: str = "") -> Arrival:
    """Return the event of a sequence number, as the native profile would have read it."""
    text = text or f"word {number} "
    stored = json.dumps({"id": f"e{number}", "type": "text.delta", "data": {"text": text}})
    return Arrival(
        id=f"e{number}",
        prev_id=f"e{number - 1}" if number > 1 else None,
        epoch="e1",
        sequence=number,
        cursor=f"e1.{number}",
        dedupe=f"e{number}",
        digest=digest_of(stored),
        type="text.delta",
        kind="text",
        text=text,
        time=None,
        data={"text": text},
        stored=stored,
        wrapped=True,
        outcome=None,
    )


def mark_at(position: int) -> Mark:
    """Return the mark behind the event of a number, in a log without gaps; 0 is the beginning."""
    return Mark(position, "e1", position, f"e{position}", f"e1.{position}") if position else Mark()


def events(lease: Lease, first: int, last: int) -> Write:
    """Return the commit of the events `first` to `last`."""
    batch = tuple(arrival(number) for number in range(first, last + 1))
    return Write(lease.run, lease.token, mark_at(first - 1), mark_at(last), batch)


def gap(lease: Lease, at: int) -> Write:
    """Return the commit of a gap that takes position `at`."""
    note = GapNote("expired", f"e1.{at - 1}", f"e1.{at + 9}", 9, {"text": "so far"})
    mark = Mark(at, "e1", at + 9, None, f"e1.{at + 9}")
    return Write(lease.run, lease.token, mark_at(at - 1), mark, gap=note)


def begun(store: Store, run_id: str = "run_1", *consumers: str) -> tuple[RunRow, Lease, list[Lease]]:
    """Return a new run with its writer's lease, and the lease of each consumer."""
    row = store.adopt(SERVER, PROFILE, run_id)
    holder = current_holder("test")
    found = [store.lease(row.run, consumer, holder, 60.0) for consumer in ("", *consumers)]
    held = [lease for lease in found if isinstance(lease, Lease)]
    assert len(held) == len(found), "a new run's leases are free"
    return row, held[0], held[1:]


@contextmanager
def refused(error: type[Exception]) -> Iterator[None]:
    """Expect an error."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"{error.__name__} was expected")


class Noting:
    """How a chapter notes a mark."""

    private_notes = False
    """Whether only the process that notes a mark can read it, until it is carried."""

    def noted(self, store: Store, lease: Lease, position: int) -> None:
        """Note a mark so that all can read it."""
        store.note(lease, position)
        if self.private_notes:
            store.carry()
