"""A server that breaks off where a run has failed, instead of sending that it has."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import Ended, WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def event(self, block: Block) -> None:
        """Break off at a failure."""
        if block.kind == "run.failed":
            raise Ended(whole=False)
        await self.put(block)


class HidesFailure(WrongServer):
    """See the module."""

    id = "hides-failure"
    words = "breaks off where a run has failed, instead of sending that it has"
    breaks = ("RS-58",)
    found_by = ("I13",)
    anomaly = "hang"
    streams = _Stream
