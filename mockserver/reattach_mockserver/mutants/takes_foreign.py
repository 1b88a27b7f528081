"""A server that takes the cursor of another run for one of this run."""

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.cursor_taken import WrongCursor


class TakesForeign(WrongCursor):
    """See the module."""

    id = "takes-foreign"
    words = "takes the cursor of another run for one of this run"
    breaks = ("RS-07", "RS-67")
    unseen = "no client under test sends the cursor of another run"

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Look at the number only."""
        return word if cursor is None else f"{run.epoch}.{min(cursor.sequence, run.last_sequence)}"
