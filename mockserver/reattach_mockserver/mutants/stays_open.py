"""A server that keeps the connection open behind the settling event."""

import asyncio

from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer

STAYS_S = 10.0
"""For ever would keep a server under test from ending."""
BEAT_S = 0.1


class _Stream(WrongStream):
    """Its streams."""

    async def end(self) -> None:
        """Send heartbeats for a while."""
        for _ in range(round(STAYS_S / BEAT_S)):
            await self.put(b": still here\n")
            await asyncio.sleep(BEAT_S)
        await self.close()


class StaysOpen(WrongServer):
    """See the module."""

    id = "stays-open"
    words = "keeps the connection open behind the settling event"
    breaks = ("RS-33",)
    unseen = "a client leaves with the settling event, so it never waits for the end of the stream"
    streams = _Stream
