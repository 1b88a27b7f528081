"""The feed of one followed run: how far the application may read, and the newest events in memory.

Written in the engine's loop, read from any thread. What crosses is a number; older events are read from the journal. Redelivery
and live delivery are one path.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import anyio

from reattach.errors import ReattachError
from reattach.model import Connection, Event, Outcome


class End(NamedTuple):
    """Why nothing more comes: the run's outcome, or a failure of the subscription."""

    outcome: Outcome | None
    error: ReattachError | None


class Feed:
    """What a subscription shows to its readers."""

    def __init__(self, kept: int) -> None:
        self._lock = threading.Lock()
        self._kept = kept
        self._ring: deque[Event] = deque()
        self._listeners: dict[int, Callable[[], None]] = {}
        self._next_listener = 0
        self.readable = 0
        self.version = 0
        self.end: End | None = None
        self.connection = Connection()

    def keep(self, events: list[Event]) -> None:
        """Keep the newest committed events in memory, up to twice the limit in a burst; their positions follow one another."""
        with self._lock:
            ring = self._ring
            if ring and events and events[0].position != ring[-1].position + 1:
                ring.clear()
            while len(ring) > self._kept:  # before what is new: a reader that keeps pace has had its turn since
                ring.popleft()
            ring.extend(events if len(events) <= self._kept else events[-self._kept :])

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
        """Return events from position after + 1 on that may be read; None if they are only in the journal."""
        readable = self.readable
        if after >= readable:
            return []
        with self._lock:
            ring = self._ring
            if not ring or ring[0].position > after + 1 or ring[-1].position < after + 1:
                return None
            begin = after + 1 - ring[0].position
            until = min(len(ring), readable + 1 - ring[0].position, begin + limit)
            return list(islice(ring, begin, until))
