"""One process of the application, and its death: its door to the journal, its way to the server, its writer.

A dead process keeps nothing, notes nothing, gives nothing back and asks nobody anything; what was durable is what it leaves. It
dies between two calls of the test, or by a fuse: just before, or just after, the n-th thing that it does to its journal.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from reattach.runtime.loop import Soon
from reattach.runtime.writer import Done, ThreadWriter
from reattach.stores.base import Busy, Holder, Lease, Store, StoreFailed, Transaction, Write
from reattach.stores.sqlite.store import SqliteStore
from reattach.testing import FailingStore, Wire
from reattach.transports.base import Request, Response, Stream, WireLost

T = TypeVar("T")


class Door(FailingStore):
    """A process's door to the journal.

    Args:
        inner: The journal.
        dead: The names of clients whose process is dead; it adds its own.
    """

    def __init__(self, inner: Store, dead: set[str]) -> None:
        super().__init__(inner)
        self.alive = True
        self.steps = 0
        self._fuse: tuple[int, bool] | None = None
        self._dead = dead
        self._clients: set[str] = set()

    def die(self) -> None:
        """Be killed now; from any thread. What was noted outlives us."""
        if self.alive:
            self.alive = False
            self._dead |= self._clients

    def bury(self) -> None:
        """Let go of the file as a kill does, once no thread of the dead process moves any more."""
        if isinstance(self.inner, SqliteStore):
            self.inner.abandon()

    def light(self, steps: int, *, after: bool) -> None:
        """Die at the so manieth step from now: before it is done, or after."""
        self._fuse = (self.steps + steps, after)

    def snuff(self) -> None:
        """Put the fuse out."""
        self._fuse = None

    def check(self) -> None:
        """Do nothing if this process is dead."""
        if not self.alive:
            raise StoreFailed("this process is dead")

    def _do(self, method: str, work: Callable[[], T]) -> T:
        self.check()
        self.steps += 1
        at, after = self._fuse or (-1, False)
        if at == self.steps and not after:
            self.die()
            self.check()
        result = super()._do(method, work)
        if at == self.steps:
            self.die()
        self.check()
        return result

    def close(self) -> None:
        """A dead process closes nothing; it may die of this, too."""
        if self.alive:
            with suppress(StoreFailed):
                super().close()

    def note(self, lease: Lease, position: int) -> None:
        """Note a mark; in the loop, which no fuse may surprise with an error that `note` never has."""
        if self.alive:
            self.inner.note(lease, position)

    def carry(self) -> None:
        """Carry marks."""
        if self.alive:
            super().carry()  # may fail, by the seam

    def release(self, lease: Lease) -> None:
        """Give back; a dead process gives nothing back."""
        if self.alive:
            super().release(lease)

    def lease(self, run: int, consumer: str, holder: Holder, seconds: float) -> Lease | Busy:
        """Take a lease, and remember under which name."""
        self._clients.add(holder.client)
        return super().lease(run, consumer, holder, seconds)

    def begin(self, lease: Lease, *, expected: int) -> Transaction:
        """Begin a transaction that dies with the process."""
        return MortalTransaction(self, super().begin(lease, expected=expected))


class MortalTransaction:
    """A user's transaction of a process.

    Args:
        door: The process's door.
        inner: The transaction.
    """

    def __init__(self, door: Door, inner: Transaction) -> None:
        self._door = door
        self._inner = inner

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run a statement."""
        return self._door._do("execute", lambda: self._inner.execute(sql, parameters))

    def call(self, function: Callable[[Any], T]) -> T:
        """Run a function."""
        return self._door._do("call", lambda: self._inner.call(function))

    def commit(self, position: int) -> None:
        """Commit, or die before or after it."""
        self._door._do("transaction", lambda: self._inner.commit(position))

    def rollback(self) -> None:
        """Undo; the death of a process does that too."""
        if self._door.alive:
            self._inner.rollback()


class MortalWire:
    """A process's way to the server.

    Args:
        inner: The server's wire.
        door: The process's door.
    """

    def __init__(self, inner: Wire, door: Door) -> None:
        self._inner = inner
        self._door = door

    async def stream(self, request: Request, *, max_event_bytes: int) -> Stream:
        """Ask for a stream."""
        self._check()
        return await self._inner.stream(request, max_event_bytes=max_event_bytes)

    async def call(self, request: Request) -> Response:
        """Make a finite call."""
        self._check()
        return await self._inner.call(request)

    async def aclose(self) -> None:
        """Nothing is pooled."""

    def _check(self) -> None:
        if not self._door.alive:
            raise WireLost("this process is dead", definite=True)


class CountedWriter:
    """The writer with its thread, which says whether it works, so that virtual time stands meanwhile.

    Args:
        store: The journal.
        soon: The way back into the loop.
    """

    def __init__(self, store: Store, soon: Soon) -> None:
        self._inner = ThreadWriter(store, soon)
        self._commits = 0
        self._posts = 0
        self._posts_done = 0

    @property
    def ident(self) -> int | None:
        """The thread's identity."""
        return self._inner.ident

    @property
    def busy(self) -> bool:
        """Whether anything is queued, under way, or not told in the loop yet."""
        return self._commits > 0 or self._posts != self._posts_done

    def commit(self, write: Write, done: Done) -> None:
        """Queue a write."""
        self._commits += 1

        def told(result: Any) -> None:
            self._commits -= 1
            done(result)

        self._inner.commit(write, told)

    def post(self, function: Callable[[], T]) -> concurrent.futures.Future[T]:
        """Queue other work."""
        future = self._inner.post(function)
        # Behind it: by then whoever waits for the work has been called in the loop, which is not idle before it has looked.
        self._posts += 1
        self._inner.post(lambda: None).add_done_callback(self._count)
        return future

    def close(self) -> None:
        """Finish."""
        self._inner.close()

    def _count(self, _: Any) -> None:
        self._posts_done += 1
