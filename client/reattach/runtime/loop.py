"""The way back into an event loop from another thread, under asyncio and trio."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")
Soon = Callable[[Callable[[], Any]], None]
"""Call a function in the loop, soon; from any thread; in order; silently nothing once the loop is gone."""


def soon_in_this_loop() -> Soon:
    """Return the way back into the loop that is running now."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio  # only where trio runs already

        token = trio.lowlevel.current_trio_token()

        def into_trio(function: Callable[[], Any]) -> None:
            try:
                token.run_sync_soon(function)
            except trio.RunFinishedError:
                return

        return into_trio

    def into_asyncio(function: Callable[[], Any]) -> None:
        try:
            loop.call_soon_threadsafe(function)
        except RuntimeError:
            return  # the loop was closed: nobody waits any more

    return into_asyncio


class Inbox:
    """Work for a loop from other threads, done in order by one of its tasks: a bare callback of asyncio may open no scope.

    Args:
        soon: The way back into the loop.
    """

    def __init__(self, soon: Soon) -> None:
        self._soon = soon
        self._work: deque[Callable[[], Any]] = deque()
        self._bell = Bell()

    def __call__(self, function: Callable[[], Any]) -> None:
        """Have it called in the loop, soon; from any thread; in order."""
        self._work.append(function)
        self._soon(self._bell.ring)

    async def run(self, fault: Callable[[Exception], None]) -> None:
        """Serve until cancelled; `fault` is told what a function raised, and the next one is served."""
        while True:
            rung = self._bell.ready()
            while self._work:
                function = self._work.popleft()
                try:
                    function()
                except Exception as error:
                    fault(error)
            await rung.wait()


class Bell:
    """Wakes one reader in a loop; it may be rung when nobody waits. Used in that loop alone."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = anyio.Event()

    def ready(self) -> anyio.Event:
        """Return what is set by any ring from now on; look for news after this, then wait for it."""
        self._event = anyio.Event()
        return self._event

    def ring(self) -> None:
        """Wake whoever waits."""
        self._event.set()


async def settled(future: concurrent.futures.Future[T], soon: Soon) -> T:
    """Wait for another thread's future. Cancelled, the work goes on and its result is dropped."""
    if not future.done():
        over = anyio.Event()
        future.add_done_callback(lambda _: soon(over.set))
        await over.wait()
    return future.result()


def apart(function: Callable[[], Coroutine[Any, Any, None]]) -> anyio.Event:
    """Begin a function in a task of the loop's own, and return what is set once it has ended; it must not raise.

    A loop that ends cancels every task, and one of asyncio's that was not let begin runs no `finally`: who waits for it must be
    told by the loop.
    """
    over = anyio.Event()
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio  # only where trio runs already

        async def task() -> None:
            try:
                await function()
            finally:
                over.set()

        trio.lowlevel.spawn_system_task(task)
    else:
        begun = loop.create_task(function(), name="reattach")
        _begun.add(begun)

        def ended(_: object) -> None:
            _begun.discard(begun)
            over.set()

        begun.add_done_callback(ended)
    return over


_begun: set[asyncio.Task[None]] = set()  # a loop keeps its tasks only weakly


async def wait_through(event: anyio.Event) -> None:
    """Wait for an event, whatever happens; a cancellation that came meanwhile is raised once it is set.

    A shield of anyio's keeps off its own cancellations and trio's, but not `asyncio.Task.cancel`, which is also what an interrupt
    of the blocking face becomes.
    """
    interrupted: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not event.is_set():
            try:
                await event.wait()
            except asyncio.CancelledError as error:
                interrupted = error
    if interrupted is not None:
        raise interrupted


async def settled_through(future: concurrent.futures.Future[T], soon: Soon) -> T:
    """Wait for another thread's future, whatever happens; see `wait_through`."""
    over = anyio.Event()
    future.add_done_callback(lambda _: soon(over.set))
    await wait_through(over)
    return future.result()
