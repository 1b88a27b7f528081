"""A server that takes a cursor beyond the end, and hides what comes up to it."""

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.block import Block
from reattach_mockserver.mutants.cursor_taken import WrongCursor
from reattach_mockserver.mutants.stream import WrongStream


class _Stream(WrongStream):
    """Its streams."""

    async def event(self, block: Block) -> None:
        """Send what is beyond the cursor."""
        if block.number > (self.after or 0):
            await self.put(block)


class HidesWhatIsAhead(WrongCursor):
    """See the module."""

    id = "hides-what-is-ahead"
    words = "takes a cursor beyond the end, and hides what comes up to it"
    breaks = ("RS-30",)
    unseen = "no client under test asks for what is beyond the end"
    streams = _Stream

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Wait at the end for what is beyond it."""
        return word if cursor is None else f"{cursor.epoch}.{min(cursor.sequence, run.last_sequence)}"
