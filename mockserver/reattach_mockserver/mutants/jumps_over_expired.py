"""A server that goes on with the first event that it still has where the one after the cursor is gone."""

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.cursor_taken import WrongCursor


class JumpsOverExpired(WrongCursor):
    """See the module."""

    id = "jumps-over-expired"
    words = "goes on with the first event that it still has where the one after the cursor is gone"
    breaks = ("RS-31",)
    found_by, anomaly = ("I5",), "lost"

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Begin at what is left, and say nothing."""
        if word is not None and (cursor is None or cursor.epoch != run.epoch):
            return word
        return f"{run.epoch}.{max(cursor.sequence if cursor else 0, run.first_sequence - 1)}"
