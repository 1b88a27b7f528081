"""The way back into an event loop from another thread, under asyncio and trio."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
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


async def settled(future: concurrent.futures.Future[T], soon: Soon) -> T:
    """Wait for another thread's future. Cancelled, the work goes on and its result is dropped."""
    if not future.done():
        over = anyio.Event()
        future.add_done_callback(lambda _: soon(over.set))
        await over.wait()
    return future.result()
