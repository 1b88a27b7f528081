"""`HoldingStream`: a stream that lets an event be overtaken by the next one. A mutant says which."""

from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.stream import WrongStream


class HoldingStream(WrongStream):
    """One event at most is held back, and no longer than the stream lasts."""

    _held: Block | None = None

    def overtaken(self, block: Block) -> bool:
        """Return whether this event waits for the next one."""
        raise NotImplementedError

    async def event(self, block: Block) -> None:
        """Send an event, and behind it what waited for it."""
        if self._held is None and self.overtaken(block):
            self._held = block
            return
        await self.put(block)
        await self.give()

    async def end(self) -> None:
        """Send what was held back, and end."""
        await self.give()
        await self.close()

    async def give(self) -> None:
        """Send what is held back."""
        if self._held is not None:
            await self.put(self._held)
            self._held = None
