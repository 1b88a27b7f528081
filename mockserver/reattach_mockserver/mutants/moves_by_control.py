"""A server that gives control frames ids of their own making."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def control(self, block: Block) -> None:
        """Name the newest cursor, as if all before it had been sent."""
        run = await self.server.engine.log.run(self.run_id)
        await self.put(block if run is None else block.saying(id=f"{run.epoch}.{run.last_sequence}"))


class MovesByControl(WrongServer):
    """See the module."""

    id = "moves-by-control"
    words = "gives control frames ids of their own making"
    breaks = ("RS-08",)
    found_by = ("I1", "I5")
    anomaly = "changed"
    streams = _Stream
