"""Takes the id for the cursor as soon as its line has come: what is cut behind the id line is skipped for ever."""

from reattach_chaos.mutants.small import SmallClient
from reattach_chaos.mutants.world import Stream


class HalfEventCursor(SmallClient):
    """Must be killed by I6. Tells no marks, as most clients with this bug."""

    tells_marks = False

    def follow(self, stream: Stream) -> None:
        """Read, and keep the id of the block that was begun."""
        try:
            super().follow(stream)
        finally:
            self.cursor = self.reader.begun.id or self.cursor
