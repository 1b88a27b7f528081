"""A server that sends the event of the cursor once more."""

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.cursor_taken import WrongCursor


class InclusiveResume(WrongCursor):
    """See the module."""

    id = "inclusive-resume"
    words = "sends the event of the cursor once more"
    breaks = ("RS-12",)
    found_by = ("I5",)
    anomaly = "duplicated"

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Begin at the event that is known."""
        return word if cursor is None else f"{cursor.epoch}.{max(cursor.sequence - 1, 0)}"
