"""A server that closes a stream that has had its share in the middle of an event."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import Ended, WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    _sent = 0

    async def event(self, block: Block) -> None:
        """Send two events, and half of the third."""
        self._sent += 1
        if self._sent == 3:
            half = block.encoded()
            await self.put(half[: len(half) // 2])
            raise Ended
        await self.put(block)


class ClosesInsideEvent(WrongServer):
    """See the module."""

    id = "closes-inside-event"
    words = "closes a stream that has had its share in the middle of an event"
    breaks = ("RS-79",)
    unseen = (
        "a right client drops half an event and asks again, and who ended the connection is not told apart from a fault"
    )
    streams = _Stream
