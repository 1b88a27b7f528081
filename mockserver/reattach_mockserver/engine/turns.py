"""One create at a time under one key, so that the second finds what the first has made.

For one event loop; over several processes the log's own transaction decides. Checked by tests/mockserver/test_create.py.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Who holds which principal's key at the moment."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str], tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, principal: str, key: str, seconds: float) -> AsyncIterator[None]:
        """Hold the principal's key for a while.

        Raises:
            TimeoutError: Whoever holds it has not let go within so many seconds.
        """
        place = (principal, key)
        lock, holders = self._turns.get(place, (asyncio.Lock(), 0))
        self._turns[place] = (lock, holders + 1)
        try:
            async with asyncio.timeout(seconds):
                await lock.acquire()
            try:
                yield
            finally:
                lock.release()
        finally:
            lock, holders = self._turns.pop(place)
            if holders > 1:
                self._turns[place] = (lock, holders - 1)
