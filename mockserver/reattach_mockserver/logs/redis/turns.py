"""One write at a time to one run from this replica, so that its own writers never undo each other's work.

For one event loop. Between replicas the script decides.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Who writes which run at the moment."""

    def __init__(self) -> None:
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, run_id: str) -> AsyncIterator[None]:
        """Hold a run for one write."""
        lock, holders = self._turns.get(run_id, (asyncio.Lock(), 0))
        self._turns[run_id] = (lock, holders + 1)
        try:
            async with lock:
                yield
        finally:
            lock, holders = self._turns.pop(run_id)
            if holders > 1:
                self._turns[run_id] = (lock, holders - 1)
