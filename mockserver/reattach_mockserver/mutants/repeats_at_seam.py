"""A server that sends the last event of the replay once more where live begins."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.seam import SeamServer
from reattach_mockserver.mutants.stream import WrongStream


class _Stream(WrongStream):
    """Its streams."""

    _last: Block | None = None
    _joined = False

    async def event(self, block: Block) -> None:
        """Send the event before, too, where it is the first that comes live."""
        if (
            self._last is not None
            and isinstance(self.server, SeamServer)
            and self.server.is_live()
            and not self._joined
        ):
            self._joined = True
            await self.put(self._last)
        self._last = block
        await self.put(block)


class RepeatsAtSeam(SeamServer):
    """See the module."""

    id = "repeats-at-seam"
    words = "sends the last event of the replay once more where live begins"
    breaks = ("RS-19",)
    found_by = ("I5",)
    anomaly = "duplicated"
    streams = _Stream
