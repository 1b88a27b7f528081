"""Notices that a client has left, so that its place is free at once and nothing waits for nobody."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from reattach_mockserver.engine.hub import Watcher
from reattach_mockserver.faces.call import Call


@asynccontextmanager
async def presence(call: Call, watcher: Watcher) -> AsyncIterator[None]:
    """Cut the watcher off when the call's client leaves."""
    listener = asyncio.create_task(_listen(call, watcher))
    try:
        yield
    finally:
        listener.cancel()
        with suppress(asyncio.CancelledError):
            await listener


async def _listen(call: Call, watcher: Watcher) -> None:
    while (await call.receive())["type"] != "http.disconnect":
        pass
    watcher.cut = True
    watcher.signal()
