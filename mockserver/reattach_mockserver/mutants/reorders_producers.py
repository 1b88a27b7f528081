"""A server that sends what two producers appended at once in the order in which they were ready."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.holding import HoldingStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(HoldingStream):
    """Its streams."""

    def overtaken(self, block: Block) -> bool:
        """Return whether it is an event of a tool."""
        return block.kind.startswith("tool.")

    async def beat(self, text: bytes) -> None:
        """Nothing comes any more that could overtake."""
        await self.give()
        await self.put(text)


class ReordersProducers(WrongServer):
    """See the module."""

    id = "reorders-producers"
    words = "sends what two producers appended at once in the order in which they were ready"
    breaks = ("RS-21", "RS-10")
    found_by = ("I5",)
    anomaly = "lost"
    streams = _Stream
