"""A server that sends events of other runs as well."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    _mixed = False

    async def event(self, block: Block) -> None:
        """Send an event of the oldest other run, too, once on each connection."""
        await self.put(block)
        if self._mixed:
            return
        self._mixed = True
        log = self.server.engine.log
        for run in await log.runs(0, 2):
            if run.id != self.run_id and (page := await log.read(run.id, 0, 1, 1)):
                other = Block([f"id: {run.epoch}.1", f"event: {page[0].type}", f"data: {page[0].body.decode()}"])
                await self.put(other)
                return


class MixesRuns(WrongServer):
    """See the module."""

    id = "mixes-runs"
    words = "sends events of other runs as well"
    breaks = ("RS-06",)
    found_by = ("I7",)
    anomaly = "foreign"
    streams = _Stream
