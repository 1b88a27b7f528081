"""The portal: one thread per process with an event loop, in which the blocking face's engines live.

Started on first use, made again after a fork. A blocking reader that also keeps timers is not possible on httpx itself: its read
timeout kills the stream, and the next read then ends cleanly (libraries.md).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from reattach import errors

T = TypeVar("T")


class Portal:
    """A running loop in a thread of its own, and the way to do something in it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="reattach-portal", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            # asyncio ends a loop in which a task raised SystemExit, as a user's token function may; the task has it too, and
            # every other client of this process lives here.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    @property
    def here(self) -> bool:
        """Whether this is the portal's own thread, where waiting for the portal would be waiting for oneself."""
        return threading.get_ident() == self._thread.ident

    def refuse_here(self) -> None:
        """Refuse to wait in the portal's own thread.

        Raises:
            UsageError: This is it: an observer, say, called the client that called it.
        """
        if self.here:
            raise errors.UsageError(
                "an observer or a token function called the client that called it.",
                hint="Hand the work to another thread.",
            )

    def call(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        """Run the coroutine function there and wait. Interrupted (Ctrl-C), it is cancelled there, and the interrupt passes.

        Raises:
            UsageError: Called from the portal's own thread, where it would wait for itself: by an observer, say.
        """
        self.refuse_here()
        future = self.submit(function, *args)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                future.cancel()
            raise

    def soon(self, function: Callable[[], Any]) -> None:
        """Call the function there, soon; does not wait."""
        self._loop.call_soon_threadsafe(function)

    def submit(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> concurrent.futures.Future[T]:
        """Run the coroutine function there."""
        return asyncio.run_coroutine_threadsafe(function(*args), self._loop)


_portal: Portal | None = None
_lock = threading.Lock()


def portal() -> Portal:
    """Return this process's portal."""
    global _portal
    with _lock:
        if _portal is None or _portal.pid != os.getpid():
            _portal = Portal()
        return _portal


def _after_fork() -> None:
    """In the child the parent's thread does not exist, and its lock may be held for ever."""
    global _portal, _lock
    _portal = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
