"""A server that says that the run is completed where a connection has had its share."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import Ended, WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    _sent = 0

    async def event(self, block: Block) -> None:
        """Send three events, and an end that is none."""
        await self.put(block)
        self._sent += 1
        if self._sent == 3 and not block.kind.startswith("run."):
            event = block.json
            done = {**event, "id": f"{event['id']}_done", "prev_id": event["id"], "sequence": block.number + 1}
            done |= {"type": "run.completed", "data": {"result": None}}
            cursor = f"{(block.field('id') or '').rpartition('.')[0]}.{block.number + 1}"
            await self.put(block.saying(id=cursor, event="run.completed").with_json(done))
            raise Ended


class EndsAtLimit(WrongServer):
    """See the module."""

    id = "ends-at-limit"
    words = "says that the run is completed where a connection has had its share"
    breaks = ("RS-49", "RS-48")
    found_by = ("I1",)
    anomaly = "lost"
    streams = _Stream
