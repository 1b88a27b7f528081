"""Marks between a `note` and the journal: what this process noted, and what anybody noted in FILE-marks.

One rule decides what a noted mark is worth, here and nowhere else: it must carry the run's incarnation and the current lease
token, and lie at or below the committed position; then the higher of it and the table's counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from reattach.stores.base import Lease, LeaseGone
from reattach.stores.marks import MarksFile, PrivateMarks, Slots

Carried = list[tuple[Slots, int]]


class LeaseRow(NamedTuple):
    """A lease and the marks that depend on it. `number` is the lease's place in FILE-marks; `holder` None: given back."""

    number: int
    token: int
    holder: str | None
    since: str
    expires_at: str | None
    incarnation: int
    committed: int
    applied: int


class Noted:
    """The slots of the leases that this process holds."""

    def __init__(self, file: MarksFile | PrivateMarks) -> None:
        self._file = file
        self._slots: dict[Lease, Slots] = {}

    def hold(self, lease: Lease, row: LeaseRow, applied: int) -> None:
        """Have slots for a lease that was just taken. The file may grow: only with the journal's write lock."""
        for held in [held for held in self._slots if held[:2] == lease[:2]]:
            del self._slots[held]
        whose = _whose(lease.run, lease.consumer, row)
        self._slots[lease] = self._file.slots(row.number, whose, row.incarnation, lease.token, applied)

    def claim(self, lease: Lease) -> None:
        """The take is durable: the slots are this lease's from now on."""
        slots = self._slots.get(lease)
        if slots is not None:
            slots.claim()

    def let_go(self, lease: Lease) -> None:
        """Note nothing more under this lease."""
        self._slots.pop(lease, None)

    def note(self, lease: Lease, position: int) -> None:
        """Note a position, from any thread; that of a lost lease is left out."""
        slots = self._slots.get(lease)
        if slots is not None:
            slots.note(position)

    def waiting(self) -> bool:
        """Return whether anything was noted that is not in the table."""
        return any(slots.position > slots.carried for slots in list(self._slots.values()))

    def carry(self, raise_mark: Callable[[Lease, int], None]) -> Carried:
        """Write what was noted into the journal, by `raise_mark`; `settle` is told once that is durable."""
        carried: Carried = []
        for lease, slots in list(self._slots.items()):
            position = slots.position
            if position > slots.carried:
                raise_mark(lease, position)
                carried.append((slots, position))
        return carried

    def moved(self, lease: Lease, position: int) -> None:
        """Know that the table's mark was moved durably."""
        slots = self._slots.get(lease)
        if slots is not None:
            slots.note(position)
            settle([(slots, position)])

    def applied(self, run: int, consumer: str, row: LeaseRow | None) -> int:
        """Return the mark that counts, 0 where there never was a lease."""
        if row is None:
            return 0
        noted = self._file.newest(row.number, _whose(run, consumer, row), row.incarnation, row.token)
        own = self._slots.get(Lease(run, consumer, row.token))
        if own is not None:
            noted = max(noted, own.position)  # what this very process noted may be of the incarnation before
        return max(row.applied, noted if noted <= row.committed else 0)

    def begin_incarnation(self, run: int) -> None:
        """Know that a gap of the run is durable: from here on notes are of the next incarnation."""
        for lease, slots in list(self._slots.items()):
            if lease.run == run:
                slots.incarnation += 1


def must_own(row: LeaseRow | None, lease: Lease) -> LeaseRow:
    """Return the row, if the lease is the current one; raise LeaseGone if not."""
    if row is None or row.token != lease.token:
        raise LeaseGone(f"the lease token is {row.token if row else None}, not {lease.token}")
    return row


def must_be_committed(position: int, row: LeaseRow) -> None:
    """Raise ValueError for a mark above the committed position: it is a fault of ours."""
    if position > row.committed:
        raise ValueError(f"applied {position} would be above committed {row.committed}")


def settle(carried: Carried) -> None:
    """Know that what was carried is durable."""
    for slots, position in carried:
        slots.carried = max(slots.carried, position)


def _whose(run: int, consumer: str, row: LeaseRow) -> str:
    # With the moment: a journal that was put back from a backup gives tokens a second time.
    return f"{run}:{consumer}:{row.since}"
