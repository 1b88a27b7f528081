"""A server that loses the event that comes between replay and live."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.seam import SeamServer
from reattach_mockserver.mutants.stream import WrongStream


class _Stream(WrongStream):
    """Its streams."""

    _lost = False

    async def event(self, block: Block) -> None:
        """Forget the first event that comes live."""
        if isinstance(self.server, SeamServer) and self.server.is_live() and not self._lost:
            self._lost = True
        else:
            await self.put(block)


class LosesAtSeam(SeamServer):
    """See the module."""

    id = "loses-at-seam"
    words = "loses the event that comes between replay and live"
    breaks = ("RS-18",)
    found_by = ("I5",)
    anomaly = "lost"
    streams = _Stream
