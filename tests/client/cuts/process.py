"""One process of a schedule: its door to the journal that outlives it, and its writer. It can die at any moment.

What a process had queued when it died may have reached the disk or not: `die` takes how much of it did.
"""

from __future__ import annotations

import concurrent.futures
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from reattach.runtime.clock import Clock
from reattach.runtime.loop import Soon
from reattach.runtime.writer import Done
from reattach.stores.base import Busy, Entry, Holder, Lease, Refusal, Store, StoreFailed, Write
from reattach.stores.memory import MemoryStore

T = TypeVar("T")


class Disk:
    """What outlives every process: the journal's content, and who is dead.

    Args:
        wall: The wall clock, in seconds.
        failures: The commits that find it full, counted from 1.
    """

    def __init__(self, wall: Callable[[], float], failures: frozenset[int]) -> None:
        self.dead: set[str] = set()
        self.journal = MemoryStore(wall=wall, alive=lambda holder: holder.client not in self.dead)
        self.commits = 0
        self.failed = 0
        self._failures = failures
        self.now = wall
        self.moved_at = -1.0
        self.before: set[str | None] = set()
        """The cursors that were durable at the beginning of, and during, the instant `moved_at`."""

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        """Commit, or find the disk full."""
        self.commits += 1
        now = self.now()
        if now != self.moved_at:
            self.moved_at, self.before = now, set()
        self.before.add(self.cursor)
        if self.commits in self._failures:
            self.failed += 1
            raise StoreFailed("no space left on device")
        return self.journal.commit(writes)

    @property
    def cursor(self) -> str | None:
        """The durable cursor of the only run."""
        rows = self.journal.rows()
        return rows[0].committed.cursor if rows else None

    @property
    def committed(self) -> int:
        """The durable position of the only run."""
        rows = self.journal.rows()
        return rows[0].committed.position if rows else 0

    @property
    def applied(self) -> int:
        """The durable applied mark of the only run."""
        rows = self.journal.rows()
        return self.journal.applied(rows[0].run, "main") if rows else 0


class Process:
    """A store (its own door to the disk) of one process.

    Args:
        disk: The disk.
        noted: Told every automatic mark before it is kept.
        consuming: Told whenever a consumer begins to read.
        beyond: Told when somebody reads where nothing is.
    """

    name = "runs.db"
    shared = False

    def __init__(
        self, disk: Disk, noted: Callable[[int], None], consuming: Callable[[], None], beyond: Callable[[int], None]
    ) -> None:
        self._disk = disk
        self._noted = noted
        self._consuming = consuming
        self._beyond = beyond
        self._clients: set[str] = set()
        self.alive = True
        self.writer: LateWriter | None = None

    def die(self, reached: int) -> None:
        """Be killed now; so many queued writes still reach the disk."""
        if self.alive:
            if self.writer is not None:
                self.writer.finish(reached)
            self.alive = False
            self._disk.dead |= self._clients
            if self.writer is not None:
                self.writer.drop()

    # what differs in a dead process -----------------------------------------------------------------------------------

    def open(self) -> None:
        """The content is there."""

    def close(self) -> None:
        """The content stays."""

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        """Commit."""
        self._check()
        return self._disk.commit(writes)

    def read(self, run: int, after: int, limit: int) -> list[Entry]:
        """Read; nobody is told that there is something before it is durable."""
        self._check()
        found = self._disk.journal.read(run, after, limit)
        if not found:
            self._beyond(after)
        return found

    def lease(self, run: int, consumer: str, holder: Holder, seconds: float) -> Lease | Busy:
        """Take a lease, and remember under which name."""
        self._check()
        self._clients.add(holder.client)
        if consumer:
            self._consuming()
        return self._disk.journal.lease(run, consumer, holder, seconds)

    def note(self, lease: Lease, position: int) -> None:
        """Note a mark; a dead process notes nothing."""
        if self.alive:
            self._noted(position)
            self._disk.journal.note(lease, position)

    def release(self, lease: Lease) -> None:
        """Give back; a dead process gives nothing back."""
        if self.alive:
            self._disk.journal.release(lease)

    def carry(self) -> None:
        """Marks are kept at once here."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._disk.journal, name)

        def call(*args: Any, **named: Any) -> Any:
            self._check()
            return method(*args, **named)

        self.__dict__[name] = call
        return call

    def _check(self) -> None:
        if not self.alive:
            raise StoreFailed("this process is dead")


class LateWriter:
    """A writer that takes time, in the loop: what is asked for is done in order, each group after its lag.

    Args:
        store: The journal.
        clock: The client's.
        lags: Seconds, in turn.
    """

    ident: int | None = None

    def __init__(self, store: Store, soon: Soon, clock: Clock, lags: tuple[float, ...]) -> None:
        self._store = store
        self._clock = clock
        self._lags = itertools.cycle(lags)
        self._queue: deque[tuple[Write, Done] | tuple[Callable[[], Any], concurrent.futures.Future[Any]]] = deque()
        self._busy = False
        self._dead = False

    def commit(self, write: Write, done: Done) -> None:
        """Queue a write."""
        self._queue.append((write, done))
        self._pump()

    def post(self, function: Callable[[], T]) -> concurrent.futures.Future[T]:
        """Queue any other work."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._queue.append((function, future))
        self._pump()
        return future

    def close(self) -> None:
        """Finish what is queued: no clock runs any more."""
        self._dead = True
        while self._queue:
            self._work()

    def finish(self, count: int) -> None:
        """Do so many things of the queue, and tell nobody."""
        for item, _ in itertools.islice(self._queue, count):
            try:
                if isinstance(item, Write):
                    self._store.commit([item])
                else:
                    item()
            except StoreFailed:
                return

    def drop(self) -> None:
        """The process is dead: whoever waits learns that nothing comes."""
        self._dead = True  # what is still asked for is refused at once, by the store: no clock runs for the dead
        while self._queue:
            item, to = self._queue.popleft()
            gone = StoreFailed("this process is dead")
            if isinstance(item, Write):
                to(gone)  # type: ignore[operator]  # a write's other half is its callback
            elif to.set_running_or_notify_cancel():  # type: ignore[union-attr]  # and work's is its future
                to.set_exception(gone)  # type: ignore[union-attr]

    def _pump(self) -> None:
        while self._queue and (self._dead or not self._busy):
            lag = next(self._lags)
            if lag > 0 and not self._dead:
                self._busy = True
                self._clock.call_at(self._clock.now() + lag, self._ring)
                return
            self._work()

    def _ring(self) -> None:
        self._busy = False
        if self._queue:
            self._work()
            self._pump()

    def _work(self) -> None:
        item, to = self._queue.popleft()
        if not isinstance(item, Write):
            try:
                result = item()
            except BaseException as error:
                to.set_exception(error)  # type: ignore[union-attr]
            else:
                to.set_result(result)  # type: ignore[union-attr]
            return
        group: list[tuple[Write, Any]] = [(item, to)]
        while self._queue and isinstance(self._queue[0][0], Write):
            group.append(self._queue.popleft())  # type: ignore[arg-type]
        results: Sequence[Any]
        try:
            results = self._store.commit([each for each, _ in group])
        except StoreFailed as error:
            results = [error] * len(group)
        for (_, done), result in zip(group, results, strict=True):
            done(result)
