"""A server that sends a second settling event behind the first."""

from reattach_mockserver.event import SETTLING
from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def event(self, block: Block) -> None:
        """Send an end twice, under two ids."""
        await self.put(block)
        if block.kind in SETTLING:
            event = block.json
            cursor = f"{(block.field('id') or '').rpartition('.')[0]}.{block.number + 1}"
            again = {**event, "id": f"{event['id']}_again", "prev_id": event["id"], "sequence": block.number + 1}
            await self.put(block.saying(id=cursor).with_json(again))


class SettlesTwice(WrongServer):
    """See the module."""

    id = "settles-twice"
    words = "sends a second settling event behind the first"
    breaks = ("RS-48",)
    found_by, anomaly = ("I7",), "foreign"
    streams = _Stream
