"""The feed of one followed run: how far the application may read, and the newest events in memory.

Written in the engine's loop, read from any thread. What crosses is a number; older events are read from the journal. Redelivery
and live delivery are one path.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import anyio

from reattach.core.messages import Arrival
from reattach.errors import ReattachError
from reattach.model import Connection, Event, Outcome
from reattach.stores.entry import event_from


class End(NamedTuple):
    """Why nothing more comes: the run's outcome, or a failure of the subscription."""

    outcome: Outcome | None
    error: ReattachError | None


SLACK_EVENTS = 4_000
SLACK_BYTES = 8 << 20
"""What a burst may hold in memory above the limit, so that a reader that keeps pace never goes to the file: what one commit brings.

More would cost more than it saves: what lives long is looked at again and again by the garbage collector."""


class _Batch(NamedTuple):
    """What was committed together; the positions follow one another."""

    run_id: str
    first: int
    events: Sequence[Arrival | Event]
    size: int


def _nothing() -> None:
    """Nobody reads from the network."""


class Feed:
    """What a subscription shows to its readers.

    With keep="cursor" (`bare`) memory is all there is: while a consumer reads (`claimed`), nothing that it has not confirmed is
    dropped, and too much of that is `full`; unless somebody waits for the end, who must not wait for the consumer.

    Args:
        kept: The newest events that stay in memory, at least; with keep="cursor", how many may wait to be confirmed.
    """

    def __init__(self, kept: int) -> None:
        self.bare = False
        self.drained: Callable[[], None] = _nothing
        """Called, from any thread, when there is room again."""
        self._claims = 0
        self._waiting = 0
        self._released = 0
        self._last = 0
        self._lock = threading.Lock()
        self._kept = kept
        self._batches: deque[_Batch] = deque()
        self._held = 0
        self._size = 0
        self._listeners: dict[int, Callable[[], None]] = {}
        self._next_listener = 0
        self.readable = 0
        self.version = 0
        self.end: End | None = None
        self.connection = Connection()

    def keep(self, run_id: str, first: int, events: Sequence[Arrival | Event], size: int = 0) -> None:
        """Keep newly committed events in memory, and drop the oldest batches that nobody needs to find there.

        Args:
            run_id: The run's id.
            first: The position of the first; if it does not follow the last one, what was kept is of no use any more.
            events: In order. An arrival becomes an event when a reader asks for it: what is handed out at once and let go
                costs the garbage collector nothing.
            size: Of their payloads, in characters.
        """
        if not events:
            return
        with self._lock:
            batches = self._batches
            if batches and first != batches[-1].first + len(batches[-1].events):
                batches.clear()
                self._held = self._size = 0
            batches.append(_Batch(run_id, first, events, size))
            self._held += len(events)
            self._size += size
            self._last = first + len(events) - 1
            while (
                not self._must_hold
                and self._held - len(batches[0].events) >= self._kept
                and (self._held > self._kept + SLACK_EVENTS or self._size > SLACK_BYTES)
            ):
                oldest = batches.popleft()
                self._held -= len(oldest.events)
                self._size -= oldest.size

    @property
    def _must_hold(self) -> bool:
        return self.bare and self._claims > 0 and not self._waiting

    @property
    def full(self) -> bool:
        """Whether nothing more should be read from the network: the handler is behind, and only memory holds what it needs."""
        return self._must_hold and self._last - self._released >= self._kept

    def claim(self, applied: int) -> bool:
        """A consumer reads from `applied` on; False: what it needs next is not here any more. With keep="cursor"."""
        with self._lock:
            if self.readable > applied and not (self._batches and self._batches[0].first <= applied + 1):
                return False
            self._claims += 1
            self._released = applied
            return True

    def unclaim(self) -> None:
        """The consumer left."""
        with self._lock:
            self._claims -= 1
        self.drained()

    def release(self, position: int) -> None:
        """Events up to `position` are confirmed and need not be held."""
        with self._lock:
            before = self._last - self._released
            self._released = max(self._released, position)
            left = self._last - self._released
            while self._batches and self._batches[0].first + len(self._batches[0].events) <= position + 1:
                oldest = self._batches.popleft()
                self._held -= len(oldest.events)
                self._size -= oldest.size
        if left <= self._kept // 2 < before:
            self.drained()

    def wait(self, more: int) -> None:
        """One more, or one fewer, waits for the end and not for the consumer."""
        self._waiting += more
        if self._waiting:
            self.drained()

    def deliver(self, position: int) -> None:
        """Let the application read up to this position."""
        if position > self.readable:
            self.readable = position
            self.changed()

    def show(self, connection: Connection) -> None:
        """Tell how the connection is."""
        if connection != self.connection:
            self.connection = connection
            self.changed()

    def finish(self, end: End) -> None:
        """Nothing more will come."""
        if self.end is None:
            self.end = end
            self.changed()

    def changed(self) -> None:
        """Wake every reader."""
        self.version += 1
        for listener in list(self._listeners.values()):
            listener()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call back in the loop on every change; returns the function that stops it. From any thread."""
        with self._lock:
            self._next_listener += 1
            mine = self._next_listener
            self._listeners[mine] = listener

        def stop() -> None:
            with self._lock:
                self._listeners.pop(mine, None)

        return stop

    async def ended(self) -> End:
        """Wait until nothing more comes. In the engine's loop."""
        while (end := self.end) is None:
            over = anyio.Event()
            stop = self.listen(over.set)
            try:
                if self.end is None:
                    await over.wait()
            finally:
                stop()
        return end

    def newest(self, after: int, limit: int) -> list[Event] | None:
        """Return events from position after + 1 on that may be read: [] if there is none, None if they are only in the file."""
        readable = self.readable
        if after >= readable:
            return []
        with self._lock:
            for batch in self._batches:
                begin = after + 1 - batch.first
                if begin < 0:
                    return None
                if begin < len(batch.events):
                    asked = batch.events[begin : min(begin + limit, readable + 1 - batch.first)]
                    break
            else:
                return None
        return [
            each if isinstance(each, Event) else event_from(each, batch.run_id, position)
            for position, each in enumerate(asked, after + 1)
        ]
