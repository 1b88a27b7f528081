"""A server that sends its heartbeats as events, with ids."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def beat(self, text: bytes) -> None:
        """Send an event under the next number."""
        run = await self.server.engine.log.run(self.run_id)
        if run is not None:
            cursor = f"{run.epoch}.{run.last_sequence + 1}"
            await self.put(Block([f"id: {cursor}", "event: heartbeat", 'data: {"type":"heartbeat"}']))


class BeatsWithIds(WrongServer):
    """See the module."""

    id = "beats-with-ids"
    words = "sends its heartbeats as events, with ids"
    breaks = ("RS-76", "RS-08")
    found_by = ("I1",)
    anomaly = "changed"
    streams = _Stream
