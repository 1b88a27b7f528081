"""A server that counts its cursors from 1 on each connection."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    _count = 0

    async def event(self, block: Block) -> None:
        """Send it under the next number of this connection."""
        self._count += 1
        epoch = (block.field("id") or "").rpartition(".")[0]
        await self.put(block.saying(id=f"{epoch}.{self._count}"))


class NumbersPerConnection(WrongServer):
    """See the module."""

    id = "numbers-per-connection"
    words = "counts its cursors from 1 on each connection"
    breaks = ("RS-04", "RS-10")
    found_by = ("I1", "I5")
    anomaly = "changed"
    streams = _Stream
