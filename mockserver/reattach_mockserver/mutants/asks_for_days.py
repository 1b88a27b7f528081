"""A server that hints that a client come back in eleven days."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def control(self, block: Block) -> None:
        """Say so in each control frame."""
        await self.put(block.saying(retry="1000000000"))


class AsksForDays(WrongServer):
    """See the module."""

    id = "asks-for-days"
    words = "hints that a client come back in eleven days"
    breaks = ("RS-77",)
    unseen = "a right client bounds the hint, and comes back as soon as after a sane one"
    streams = _Stream
