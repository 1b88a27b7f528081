"""A server that begins at the beginning where the cursor is none."""

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.cursor_taken import WrongCursor


class TakesGarbage(WrongCursor):
    """See the module."""

    id = "takes-garbage"
    words = "begins at the beginning where the cursor is none"
    breaks = ("RS-29",)
    unseen = "no client under test sends what is no cursor"

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Take what cannot be read for nothing."""
        return word if cursor is not None or word in ("tail", "earliest") else None
