"""A server that ends the stream without the settling event."""

from reattach_mockserver.event import SETTLING
from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def event(self, block: Block) -> None:
        """Send what does not settle the run."""
        if block.kind not in SETTLING:
            await self.put(block)


class WithholdsEnd(WrongServer):
    """See the module."""

    id = "withholds-end"
    words = "ends the stream without the settling event"
    breaks = ("RS-48", "RS-33")
    found_by = ("I13",)
    anomaly = "hang"
    streams = _Stream
