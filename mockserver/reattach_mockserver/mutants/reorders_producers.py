"""A server that sends what two producers appended at once in the order in which they were ready."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    _held: Block | None = None

    async def event(self, block: Block) -> None:
        """Let each event of a tool be overtaken by the next one."""
        if self._held is None and block.kind.startswith("tool."):
            self._held = block
            return
        await self.put(block)
        await self._give()

    async def beat(self, text: bytes) -> None:
        """Nothing comes any more that could overtake."""
        await self._give()
        await self.put(text)

    async def end(self) -> None:
        """Send what was held back, and end."""
        await self._give()
        await self.close()

    async def _give(self) -> None:
        if self._held is not None:
            await self.put(self._held)
            self._held = None


class ReordersProducers(WrongServer):
    """See the module."""

    id = "reorders-producers"
    words = "sends what two producers appended at once in the order in which they were ready"
    breaks = ("RS-21", "RS-10")
    found_by = ("I5",)
    anomaly = "lost"
    streams = _Stream
