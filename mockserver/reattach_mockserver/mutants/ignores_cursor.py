"""A server that begins at the beginning, whatever the cursor."""

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.cursor_taken import WrongCursor


class IgnoresCursor(WrongCursor):
    """See the module."""

    id = "ignores-cursor"
    words = "begins at the beginning, whatever the cursor"
    breaks = ("RS-69", "RS-12", "RS-17")
    found_by = ("I5",)
    anomaly = "duplicated"

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Begin at the beginning."""
        return None
