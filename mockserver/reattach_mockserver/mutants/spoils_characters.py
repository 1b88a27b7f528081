"""A server that sends a question mark for each character that is not ASCII."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def event(self, block: Block) -> None:
        """Send it as ASCII."""
        await self.put(block.saying(data=(block.field("data") or "").encode("ascii", "replace").decode()))


class SpoilsCharacters(WrongServer):
    """See the module."""

    id = "spoils-characters"
    words = "sends a question mark for each character that is not ASCII"
    breaks = ("RS-72",)
    found_by = ("I1",)
    anomaly = "changed"
    streams = _Stream
