"""A server that goes on with the first event that it still has where the one after the cursor is gone."""

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.cursor_taken import WrongCursor


class JumpsOverExpired(WrongCursor):
    """See the module."""

    id = "jumps-over-expired"
    words = "goes on with the first event that it still has where the one after the cursor is gone"
    breaks = ("RS-31",)

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Begin at what is left, and say nothing."""
        sequence = 0 if cursor is None else cursor.sequence
        return f"{run.epoch}.{max(sequence, run.first_sequence - 1)}" if word is None or cursor is not None else word
