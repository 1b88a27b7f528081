"""`WatchedStore`: our client's journal, where the instants of a commit and of a mark are seen, said, and struck.

"received" is just before the events of a commit are written, "committed" just behind it, "applied" behind the mark. A commit may
hold many events: then an instant of one is that of the last. All that is kept is kept by the store inside.
"""

from collections.abc import Sequence

from reattach.testing import FailingStore
from reattach.testing.seams import Lease, Refusal, Store, StoreFailed, StoreLocked, Write
from reattach_chaos.cases.inside.striker import StoreStruck, Striker
from reattach_chaos.schedules import Place


class WatchedStore(FailingStore):
    """A journal of a process that does faults to itself.

    Args:
        inner: What keeps.
        striker: The faults.
    """

    def __init__(self, inner: Store, striker: Striker) -> None:
        super().__init__(inner)
        self._striker = striker

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        """See `Store.commit`."""
        striker = self._striker
        for write in writes:
            if write.mark != write.prev:
                striker.meet(Place.RECEIVED, write.mark.sequence)
        try:
            striker.write()
        except StoreStruck as struck:
            raise (StoreLocked if struck.locked else StoreFailed)(str(struck)) from struck
        with striker.lock:
            refusals = self.inner.commit(writes)
            kept = [write for write, refusal in zip(writes, refusals, strict=True) if refusal is None]
            told = [each.mark for each in kept if each.mark != each.prev and each.mark.cursor is not None]
            for mark in told:
                striker.say("committed", id=mark.cursor)
            for mark in told:
                striker.meet(Place.COMMITTED, mark.sequence)
        return refusals

    def note(self, lease: Lease, position: int) -> None:
        """See `Store.note`."""
        with self._striker.lock:
            self.inner.note(lease, position)
            self._applied(lease, position)

    def mark(self, lease: Lease, position: int) -> None:
        """See `Store.mark`."""
        with self._striker.lock:
            self.inner.mark(lease, position)
            self._applied(lease, position)

    def _applied(self, lease: Lease, position: int) -> None:
        """Say which event is confirmed; a gap has a position of its own, and is none."""
        entries = self.inner.read(lease.run, position - 1, 1) if position else []
        for entry in entries[:1]:  # a store gives whole commits
            event = entry.element
            if entry.position == position and "gap" not in event and isinstance(event.get("cursor"), str):
                self._striker.say("applied", id=event["cursor"])
                self._striker.meet(Place.APPLIED, event.get("sequence") or 0)
