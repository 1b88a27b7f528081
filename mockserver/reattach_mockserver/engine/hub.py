"""Wakes the readers of a run when its log has grown, and tells them to leave.

A reader joins *before* it reads the log and waits only after a read that brought nothing, so what is appended in
between wakes it at once: no event falls between replay and live. Nothing is queued for anybody: a reader reads the
log itself, at its own pace, so a slow one costs the same memory as a fast one and delays nobody.

For one event loop only.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Watcher:
    """One reader of one run, by a stream or by a poll. `closing`: why it is to leave; `cut`: at once, without a word."""

    __slots__ = ("_future", "_signalled", "closing", "cut", "principal", "stream")

    def __init__(self, principal: str, *, stream: bool = False) -> None:
        self.principal = principal
        self.stream = stream
        self.closing: str | None = None
        self.cut = False
        self._signalled = False
        self._future: asyncio.Future[None] | None = None

    def signal(self) -> None:
        """Wake the reader, now or when it next waits."""
        self._signalled = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def leave(self, reason: str) -> None:
        """Ask the reader to leave between events. The first reason stays."""
        self.closing = self.closing or reason
        self.signal()

    async def wait(self, seconds: float | None) -> None:
        """Return when signalled, at once if that was since the last wait, or after so many seconds."""
        if not self._signalled:
            loop = asyncio.get_running_loop()
            self._future = loop.create_future()
            timer = None if seconds is None else loop.call_later(max(seconds, 0.0), self._wake)
            try:
                await self._future
            finally:
                self._future = None
                if timer is not None:
                    timer.cancel()
        self._signalled = False

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


class Hub:
    """All readers of all runs."""

    def __init__(self) -> None:
        self._watchers: dict[str, set[Watcher]] = {}
        self._streams: dict[str, int] = {}
        self._left = asyncio.Event()

    @contextmanager
    def watching(self, run_id: str, principal: str, *, stream: bool) -> Iterator[Watcher]:
        """Be a reader of the run for a while; `stream` counts as one of the principal's streams."""
        watcher = Watcher(principal, stream=stream)
        self._watchers.setdefault(run_id, set()).add(watcher)
        if stream:
            self._streams[principal] = self.streams(principal) + 1
        try:
            yield watcher
        finally:
            watchers = self._watchers[run_id]
            watchers.discard(watcher)
            if not watchers:
                del self._watchers[run_id]
                self._left.set()
            if stream:
                self._streams[principal] -= 1

    def streams(self, principal: str) -> int:
        """Return how many streams the principal holds open."""
        return self._streams.get(principal, 0)

    def readers(self, run_id: str) -> int:
        """Return how many read this run."""
        return len(self._watchers.get(run_id, ()))

    def wake(self, run_id: str) -> None:
        """Tell the run's readers that there may be more to read."""
        for watcher in self._watchers.get(run_id, ()):
            watcher.signal()

    def wake_all(self) -> None:
        """Tell every reader that something may have changed."""
        for watcher in self._of(None):
            watcher.signal()

    def all(self) -> Iterator[tuple[str, Watcher]]:
        """Yield every reader with the id of its run."""
        for run_id, watchers in self._watchers.items():
            for watcher in watchers:
                yield run_id, watcher

    def close(self, reason: str, run_id: str | None = None) -> None:
        """Ask the readers of a run, or of all, to leave between events."""
        for watcher in self._of(run_id):
            watcher.leave(reason)

    def cut(self) -> None:
        """Make all readers break off at once, as the death of a process would."""
        for watcher in self._of(None):
            watcher.cut = True
            watcher.signal()

    async def empty(self, seconds: float) -> bool:
        """Wait until nobody reads, at most so long; return whether that came true."""
        try:
            async with asyncio.timeout(seconds):
                while self._watchers:
                    self._left.clear()
                    await self._left.wait()
        except TimeoutError:
            return False
        return True

    def _of(self, run_id: str | None) -> list[Watcher]:
        if run_id is not None:
            return list(self._watchers.get(run_id, ()))
        return [watcher for watchers in self._watchers.values() for watcher in watchers]
