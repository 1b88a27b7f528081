"""A server that renders an event anew, with the time of sending, when it sends it again."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def event(self, block: Block) -> None:
        """Put the number of this connection's cursor into what a resume is sent."""
        if self.after is None:
            await self.put(block)
            return
        event = block.json
        await self.put(block.with_json({**event, "data": {**event["data"], "sent_after": self.after}}))


class RendersAgain(WrongServer):
    """See the module."""

    id = "renders-again"
    words = "renders an event anew, with the time of sending, when it sends it again"
    breaks = ("RS-04",)
    found_by = ("I1",)
    anomaly = "changed"
    streams = _Stream
