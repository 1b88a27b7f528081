"""A server that sends the events of tools without an id."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def event(self, block: Block) -> None:
        """Take the id out of a tool's event."""
        await self.put(block.saying(id=None) if block.kind.startswith("tool.") else block)


class LeavesIdsOut(WrongServer):
    """See the module."""

    id = "leaves-ids-out"
    words = "sends the events of tools without an id"
    breaks = ("RS-03",)
    found_by = ("I5",)
    anomaly = "lost"
    streams = _Stream
