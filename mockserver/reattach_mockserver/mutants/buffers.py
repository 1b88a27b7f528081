"""A server that sends when four kilobytes have come together."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    _kept = b""

    async def put(self, piece: Block | bytes) -> None:
        """Keep it until there is more."""
        self._kept += piece if isinstance(piece, bytes) else piece.encoded()
        if len(self._kept) >= 4096:
            await self._give()

    async def close(self) -> None:
        """Send what was kept, and end."""
        await self._give()
        await super().close()

    async def _give(self) -> None:
        kept, self._kept = self._kept, b""
        await super().put(kept)


class Buffers(WrongServer):
    """See the module."""

    id = "buffers"
    words = "sends when four kilobytes have come together"
    breaks = ("RS-75",)
    unseen = "an event that is held back looks like one that has not happened, and no law holds a server to its pace"
    streams = _Stream
