"""A server that loses the first event of the second page of a replay."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    _sent = 0

    async def event(self, block: Block) -> None:
        """Send all but one."""
        self._sent += 1
        if self._sent != 33:
            await self.put(block)


class LosesAtPageEdge(WrongServer):
    """See the module."""

    id = "loses-at-page-edge"
    words = "loses the first event of the second page of a replay"
    breaks = ("RS-13", "RS-18")
    found_by = ("I5",)
    anomaly = "lost"
    streams = _Stream
