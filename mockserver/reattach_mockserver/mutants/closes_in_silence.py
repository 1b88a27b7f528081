"""A server that gives no reason where it closes a healthy stream."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def control(self, block: Block) -> None:
        """Send what is not a reason."""
        if block.field("event") != "stream.closing":
            await self.put(block)


class ClosesInSilence(WrongServer):
    """See the module."""

    id = "closes-in-silence"
    words = "gives no reason where it closes a healthy stream"
    breaks = ("RS-64",)
    unseen = "a client comes back after any end of a stream; the reason only tells it how soon"
    streams = _Stream
