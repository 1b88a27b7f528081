"""A server that has a NUL in its cursors."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def event(self, block: Block) -> None:
        """Put it behind the number."""
        await self.put(block.saying(id=f"{block.field('id')}\0"))


class SendsNul(WrongServer):
    """See the module."""

    id = "sends-nul"
    words = "has a NUL in its cursors"
    breaks = ("RS-70", "RS-71")
    unseen = "a right reader drops an id with a NUL in it, and goes on by the number in the event"
    streams = _Stream
