"""A journal that outlives its processes, in one event loop: `Disk`, a process's door to it, and a writer that takes virtual time.

    disk = Disk(clock.time)
    store = MortalStore(disk)                       # one process; give it to a client
    store.die()                                     # kill -9: whatever it does from now on reaches nothing
    store = MortalStore(disk)                       # the next process finds what had been durable

Nothing here knows what is written, and nothing waits. A dead process's client still has to be closed: its tasks belong to the
loop that they share with the living.
"""

from __future__ import annotations

import concurrent.futures
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

from reattach.runtime.clock import Clock
from reattach.runtime.loop import Soon
from reattach.runtime.writer import Done
from reattach.stores.base import Busy, Holder, Lease, Store, StoreFailed, Write
from reattach.stores.memory import MemoryStore
from reattach.testing.failing import FailingStore

T = TypeVar("T")
_NOTHING = frozenset({"open", "close", "note", "release", "carry"})
"""What a dead process does not do, without an error: nobody would be told of it."""


class Disk:
    """What outlives every process: the journal's content, and who is dead.

    Args:
        wall: The wall clock, in seconds.
    """

    def __init__(self, wall: Callable[[], float]) -> None:
        self.dead: set[str] = set()
        """The lease holders that are dead."""
        self.journal = MemoryStore(wall=wall, alive=lambda holder: holder.client not in self.dead)


class MortalStore(FailingStore):
    """One process's door to a disk. It can be killed at any moment, and fails on demand like any `FailingStore`.

    Args:
        disk: The disk.
    """

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk.journal)
        self.alive = True
        self.writer: LateWriter | None = None
        """A writer whose queue dies with the process."""
        self._disk = disk
        self._clients: set[str] = set()

    def die(self, reached: int = 0) -> None:
        """Be killed now; so many queued writes still reach the disk."""
        if self.alive:
            if self.writer is not None:
                self.writer.finish(reached)
            self.alive = False
            self._disk.dead |= self._clients
            if self.writer is not None:
                self.writer.drop()

    def lease(self, run: int, consumer: str, holder: Holder, seconds: float) -> Lease | Busy:
        """Take a lease, and remember under which name."""
        if self.alive:
            self._clients.add(holder.client)
        return super().lease(run, consumer, holder, seconds)

    def _do(self, method: str, work: Callable[[], T]) -> T:
        if self.alive:
            return super()._do(method, work)
        if method in _NOTHING:
            return cast(T, None)
        raise StoreFailed("this process is dead")


class LateWriter:
    """A writer that takes time, in the loop: what is asked for is done in order, each group after its lag.

    Args:
        store: The journal.
        soon: The way into the loop; not needed, since it is never left.
        clock: The client's.
        lags: Seconds, for one group after the other; without end.
    """

    ident: int | None = None

    def __init__(self, store: Store, soon: Soon, clock: Clock, lags: Iterator[float]) -> None:
        self._store = store
        self._clock = clock
        self._lags = lags
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
                cast(Done, to)(gone)
            else:
                future = cast("concurrent.futures.Future[Any]", to)
                if future.set_running_or_notify_cancel():
                    future.set_exception(gone)

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
            future = cast("concurrent.futures.Future[Any]", to)
            try:
                result = item()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            return
        group: list[tuple[Write, Done]] = [(item, cast(Done, to))]
        while self._queue and isinstance(self._queue[0][0], Write):
            group.append(cast("tuple[Write, Done]", self._queue.popleft()))
        results: Sequence[Any]
        try:
            results = self._store.commit([each for each, _ in group])
        except StoreFailed as error:
            results = [error] * len(group)
        for (_, done), outcome in zip(group, results, strict=True):
            done(outcome)
