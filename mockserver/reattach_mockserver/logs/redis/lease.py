"""The lease of one replica, renewed all the time: while it lasts, the runs that it owns are its own.

One entry for a replica, however many runs it plays. Time is Redis's own, so replicas need no common clock. A lease decides only who
may take a run over; that a former owner writes no more is the affair of the writer token.
"""

import asyncio

from reattach_mockserver.logs.base import Listener, LogUnavailable, RunRecord
from reattach_mockserver.logs.redis.link import Link, again
from reattach_mockserver.logs.redis.records import row_of
from reattach_mockserver.logs.redis.scripts import BEAT, LEAVE, ORPHANS

_ALL = 1_000_000
_RETRY = 0.2  # seconds after a beat that failed


class Lease:
    """Keeps one replica known as alive.

    Args:
        link: The way to Redis.
        replica: Its name.
        seconds: How long it is taken for alive after its last sign of life.
        listener: Told of orphans, and that our own lease had run out.
    """

    def __init__(self, link: Link, replica: str, seconds: float, listener: Listener) -> None:
        self._link = link
        self._replica = replica
        self._ms = int(seconds * 1000)
        self._listener = listener
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Be known from now on."""
        await self._beat()
        self._task = asyncio.create_task(self._run(), name="reattach redis lease")

    async def close(self) -> None:
        """Let go of all that is owned; if Redis cannot be asked, the lease runs out by itself."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None
        try:
            await self._link.script(LEAVE, self._replica)
        except LogUnavailable:
            return

    async def orphans(self, limit: int | None) -> tuple[RunRecord, ...]:
        """Return runs that have not settled and whose owner is gone, a random choice if there are more than `limit`."""
        rows = await again(lambda: self._link.script(ORPHANS, limit or _ALL, self._ms))
        return tuple(row.record for found in rows if (row := row_of(found)) is not None)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._ms / 3000)
            try:
                lived, orphans = await self._beat()
            except LogUnavailable:
                await asyncio.sleep(_RETRY)
                continue
            if not lived:
                self._listener.missed()
            if orphans:
                self._listener.orphaned()

    async def _beat(self) -> tuple[bool, int]:
        lived, orphans = await again(lambda: self._link.script(BEAT, self._replica, self._ms))
        return bool(lived), int(orphans)
