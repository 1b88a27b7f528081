"""The writer: the one thread that writes a journal. Everything that must be durable goes through it, in order.

Commits that wait while another is under way are made durable together (group commit): durability costs one transaction per
group, not per event. What is queued behind a failed commit of the same run is refused by the store's predecessor check.
"""

from __future__ import annotations

import concurrent.futures
import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from reattach import errors
from reattach.runtime.loop import Soon
from reattach.stores.base import Refusal, Store, Write

T = TypeVar("T")
Done = Callable[[Refusal | BaseException | None], None]
GROUP = 512
GROUP_EVENTS = 4_000
GROUP_BYTES = 4 << 20
"""Most writes, events and bytes of payload in one transaction: bounds how long one commit may take. A single write that is larger
(one read of the network, with an event that is large itself) goes alone."""


class Writer(Protocol):
    """The journal's only way in."""

    @property
    def ident(self) -> int | None:
        """The thread that writes; None: whoever calls."""
        ...

    def commit(self, write: Write, done: Done) -> None:
        """Queue a write; `done` is called in the loop, in order, with what became of it."""
        ...

    def post(self, function: Callable[[], T]) -> concurrent.futures.Future[T]:
        """Queue any other work on the store; from any thread."""
        ...

    def close(self) -> None:
        """Finish what is queued, then stop."""
        ...


class _Commit(NamedTuple):
    write: Write
    done: Done


class ThreadWriter:
    """A writer with a thread of its own.

    Args:
        store: An open store.
        soon: The way back into the loop.
    """

    def __init__(self, store: Store, soon: Soon) -> None:
        self._store = store
        self._soon = soon
        self._queue: queue.SimpleQueue[_Commit | Callable[[], Any] | None] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="reattach-writer", daemon=True)
        self._thread.start()

    @property
    def ident(self) -> int | None:
        """The thread's identity."""
        return self._thread.ident

    def commit(self, write: Write, done: Done) -> None:
        """Queue a write."""
        self._queue.put(_Commit(write, done))

    def post(self, function: Callable[[], T]) -> concurrent.futures.Future[T]:
        """Queue any other work on the store."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work() -> None:
            try:
                result = function()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        with self._lock:
            if not self._closed:
                self._queue.put(work)
                return future
        future.set_exception(
            errors.Closed("the client is closed.", hint="Runs go on; make a new client on the same journal.")
        )
        return future

    def close(self) -> None:
        """Finish what is queued, then stop. Called from another thread than the writer's."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        item = self._queue.get()
        while item is not None:
            if isinstance(item, _Commit):
                item = self._group(item)
            else:
                item()
                item = self._queue.get()

    def _group(self, first: _Commit) -> _Commit | Callable[[], Any] | None:
        """Commit all that waits; return the item that comes after."""
        group = [first]
        events, size = _weight(first.write)
        after: _Commit | Callable[[], Any] | None = None
        waiting = True
        while len(group) < GROUP:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                waiting = False
                break
            if not isinstance(item, _Commit):
                after = item
                break
            more, larger = _weight(item.write)
            if events + more > GROUP_EVENTS or size + larger > GROUP_BYTES:
                after = item
                break
            group.append(item)
            events, size = events + more, size + larger
        results: list[Refusal | BaseException | None]
        try:
            results = list(self._store.commit([each.write for each in group]))
        except BaseException as error:
            results = [error] * len(group)
        self._soon(lambda: tell(group, results))
        if after is None and (not waiting or len(group) >= GROUP):
            return self._queue.get()
        return after


def _weight(write: Write) -> tuple[int, int]:
    """Return how many events a write brings, and the bytes of their payload."""
    return len(write.batch), sum(len(arrival.stored) for arrival in write.batch)


def tell(group: list[_Commit], results: list[Refusal | BaseException | None]) -> None:
    """Tell each what became of its write, in order."""
    for each, result in zip(group, results, strict=True):
        each.done(result)


class InlineWriter:
    """A writer without a thread: each write settles before `commit` returns, for simulations in one event loop."""

    def __init__(self, store: Store, soon: Soon) -> None:
        self._store = store
        self._soon = soon
        self.ident: int | None = None

    def commit(self, write: Write, done: Done) -> None:
        """Write now."""
        result: Refusal | BaseException | None
        try:
            (result,) = self._store.commit([write])
        except BaseException as error:
            result = error
        done(result)

    def post(self, function: Callable[[], T]) -> concurrent.futures.Future[T]:
        """Work now."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        """Nothing is queued."""
