"""A server that leaves out the event after the cursor."""

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.cursor_taken import WrongCursor


class SkipsOne(WrongCursor):
    """See the module."""

    id = "skips-one"
    words = "leaves out the event after the cursor"
    breaks = ("RS-12",)
    found_by = ("I5",)
    anomaly = "lost"

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Begin one too late, where there is one more."""
        if cursor is None or cursor.sequence >= run.last_sequence - 1:
            return word
        return f"{cursor.epoch}.{cursor.sequence + 1}"
