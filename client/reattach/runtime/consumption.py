"""One consumer's way through one run: which event is in hand, what is confirmed, what comes again.

Two marks: the journal's committed position, and this consumer's applied one. Asking for the next event confirms the last; a loop
that is entered again goes on after the last confirmed event, so an event whose handler raised comes first next time, marked.
No waiting here: `take` returns what may be read now. Used from one thread or task at a time, which `own` enforces.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import NamedTuple

from reattach import errors
from reattach.model import Event
from reattach.runtime.feed import Feed
from reattach.stores.base import Lease, Store
from reattach.stores.entry import event_of

READ = 4_096  # events taken from memory or file at a time: a trip to the file costs a change of thread


class Owner(NamedTuple):
    """A thread or task that reads, and how to know whether it still does."""

    key: int
    alive: Callable[[], bool]


class Handed(NamedTuple):
    """What a consumer was handed that may not be confirmed. A lease with the next token knows it exactly: nobody read in between.

    `shown` is the position up to which events may have been handed out, by whichever process; `handed` up to which this client
    did, so that their confirmation can still come.
    """

    token: int = 0
    shown: int = 0
    handed: int = 0


class Consumption:
    """A consumer's place in a run.

    Args:
        feed: What may be read.
        store: The journal, for what is not in memory, and for marks.
        run: The journal's number of the run.
        run_id: The run's id.
        lease: The right to move the consumer's mark; None marks nothing (`after=`).
        applied: The position to go on after.
        shown: Events up to here may have been handed out before, by an earlier process or by this one.
        handed: Up to here this very client handed them out.
        holds: Whether the lease is still ours.
        skip: Says of an event whether a reader that began in the middle does not want it.
        manual: Asking for the next event confirms nothing; only `ack` and a transaction do.
        applied_told: Is told of what was confirmed: how many events, and the last one's cursor.
    """

    def __init__(
        self,
        feed: Feed,
        store: Store,
        run: int,
        run_id: str,
        lease: Lease | None,
        applied: int,
        shown: int,
        handed: int,
        holds: Callable[[Lease], bool],
        skip: Callable[[Event], bool] | None = None,
        manual: bool = False,
        applied_told: Callable[[int, str | None], None] | None = None,
    ) -> None:
        self.feed = feed
        self.lease = lease
        self.manual = manual
        self._applied_told = applied_told
        self._plain = not manual and applied_told is None and skip is None
        """Whether confirming is nothing but a note, so that `swift` may do it."""
        self.in_hand: Event | None = None
        self._store = store
        self._run = run
        self._run_id = run_id
        self._applied = applied
        self._shown = shown
        self._holds = holds
        self._skip = skip
        self._buffer: list[Event] = []
        self._next = 0
        self._position = applied
        self._again = False
        self._highest = max(applied, handed)
        self._owner: Owner | None = None
        self._owning = threading.Lock()
        self._dropped = False

    # whose ------------------------------------------------------------------------------------------------------------

    def own(self, owner: Owner) -> None:
        """Let this thread or task read, and no other one meanwhile.

        Raises:
            RunBusy: Another living thread or unfinished task is in the loop.
        """
        with self._owning:
            if self._owner is not None and self._owner.key != owner.key and self._owner.alive():
                raise errors.RunBusy(
                    f"run {self._run_id!r} is already being read by another thread or task of this client.",
                    run_id=self._run_id,
                    hint='Use views() or after="beginning" to look on, or detach() first.',
                )
            self._owner = owner

    def owned_by(self, owner: Owner) -> bool:
        """Whether this thread or task read last."""
        return self._owner is not None and self._owner.key == owner.key

    def drop(self) -> None:
        """Nobody reads here any more; who waits for an event learns it."""
        self._dropped = True

    def check_kept(self) -> None:
        """Tell a reader that it was detached meanwhile.

        Raises:
            Closed: It was.
        """
        if self._dropped:
            raise errors.Closed(
                f"run {self._run_id!r} was detached while you waited. It goes on.",
                run_id=self._run_id,
                hint="Iterate it again.",
            )

    # reading ----------------------------------------------------------------------------------------------------------

    def rewind(self) -> None:
        """The loop is entered again: go on after the last confirmed event."""
        if self.in_hand is not None or self._position != self._applied:
            self._position = self._applied
            self._buffer, self._next = [], 0
            self.in_hand = None
        self._again = False

    def repeat(self) -> None:
        """The event in hand comes again: its transaction was rolled back."""
        self._again = True

    def swift(self, key: int) -> Event | None:
        """Confirm the event in hand and return the next, where nothing needs a second look: one of many that were read ahead.

        Every event of a burst passes here. None says nothing: `own`, `confirm` and `take` find out.

        Args:
            key: Of the thread or task that asks.
        """
        owner, at = self._owner, self._next
        if owner is None or owner.key != key or self._again or self._dropped or at >= len(self._buffer):
            return None
        event = self._buffer[at]
        position = event.position
        if position <= self._shown or not self._plain or self.feed.bare:
            return None
        lease, last = self.lease, self.in_hand
        if lease is not None:
            if not self._holds(lease):
                return None  # said by `confirm`, where the reader then lets go
            if last is not None:
                self._store.note(lease, last.position)
        if last is not None:
            self._applied = last.position
        self._next = at + 1
        self._position = self._shown = position
        self._highest = max(self._highest, position)
        self.in_hand = event
        return event

    def take(self) -> Event | None:
        """Return the next event that may be read and is in memory; None if there is none (see `stored`)."""
        if self._again and self.in_hand is not None:
            self._again = False
            return dataclasses.replace(self.in_hand, redelivered=True)
        while True:
            if self._next >= len(self._buffer):
                newest = self.feed.newest(self._position, READ)
                if not newest:
                    return None
                self._buffer, self._next = newest, 0
            event = self._buffer[self._next]
            self._next += 1
            self._position = event.position
            if self._skip is not None and self._skip(event):
                continue
            if event.position <= self._shown:
                if self.lease is not None:
                    event = dataclasses.replace(event, redelivered=True)
            else:
                self._shown = event.position
            self.in_hand = event
            self._highest = max(self._highest, event.position)
            return event

    @property
    def stored(self) -> bool:
        """Whether what comes next is only in the journal: `load` it."""
        return self._next >= len(self._buffer) and self.feed.newest(self._position, 1) is None

    def load(self) -> None:
        """Read the next events from the journal (blocks on the disk)."""
        readable = self.feed.readable
        entries = self._store.read(self._run, self._position, READ)
        self._buffer = [
            event_of(entry.element, self._run_id, entry.position) for entry in entries if entry.position <= readable
        ]
        self._next = 0

    @property
    def exhausted(self) -> bool:
        """Whether everything that may be read was read."""
        return not self._again and self._next >= len(self._buffer) and self._position >= self.feed.readable

    # confirming -------------------------------------------------------------------------------------------------------

    def confirm(self) -> None:
        """Confirm the event in hand, without waiting for the disk.

        Raises:
            LeaseLost: Another process took the run over; it sees this event again.
        """
        event = self.in_hand
        if event is None or self._again:
            return
        if self.lease is not None and not self._holds(self.lease):
            raise errors.LeaseLost(
                f"run {self._run_id!r} was taken over by another process; event {event.id!r} was not confirmed.",
                run_id=self._run_id,
                cursor=event.cursor,
                hint="The other process sees these events; iterate again when it has let go.",
            )
        if self.manual:
            return
        self.in_hand = None
        if self.lease is not None:
            self._store.note(self.lease, event.position)
        self._apply(event.position, event.cursor)

    def confirmed(self, position: int, cursor: str | None) -> None:
        """A durable mark was written: events up to this position, with this cursor, are confirmed. From any thread."""
        self._apply(position, cursor)
        event = self.in_hand
        if event is not None and event.position <= position:
            self._again = False
            if not self.manual:  # there the reader may be at the next event already, and to confirm twice does no harm
                self.in_hand = None

    def _apply(self, position: int, cursor: str | None) -> None:
        count = position - self._applied
        if count <= 0:
            return
        self._applied = position
        if self.feed.bare:
            self.feed.release(position)
        if self._applied_told is not None and self.lease is not None:
            self._applied_told(count, cursor)

    @property
    def unconfirmed(self) -> bool:
        """Whether somebody may still have events to confirm that this reader was handed."""
        return self.manual and self._applied < self._highest

    @property
    def handed_out(self) -> int:
        """The highest position that was handed out here, to this reader or to one before it."""
        return self._highest

    @property
    def shown(self) -> int:
        """The position up to which events come marked: they may have been handed out before."""
        return self._shown

    @property
    def applied(self) -> int:
        """The applied position."""
        return self._applied
