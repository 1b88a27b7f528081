"""A server that sends neighbours in another order when it sends them again."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    _held: Block | None = None

    async def event(self, block: Block) -> None:
        """Hold every other event of a resume back until the next one is sent."""
        if self.after is not None and self._held is None and not block.kind.startswith("run."):
            self._held = block
            return
        await self.put(block)
        await self._give()

    async def end(self) -> None:
        """Send what was held back, and end."""
        await self._give()
        await self.close()

    async def _give(self) -> None:
        if self._held is not None:
            await self.put(self._held)
            self._held = None


class SwapsOnReplay(WrongServer):
    """See the module."""

    id = "swaps-on-replay"
    words = "sends neighbours in another order when it sends them again"
    breaks = ("RS-10", "RS-11")
    found_by = ("I5",)
    anomaly = "lost"
    streams = _Stream
