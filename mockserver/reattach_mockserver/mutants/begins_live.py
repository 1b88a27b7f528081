"""A server that begins at the end where no cursor is sent."""

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.cursor_taken import WrongCursor


class BeginsLive(WrongCursor):
    """See the module."""

    id = "begins-live"
    words = "begins at the end where no cursor is sent"
    breaks = ("RS-14",)
    found_by = ("I15",)
    anomaly = "gave up"

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Begin near the end, without a cursor."""
        return f"{run.epoch}.{run.last_sequence - 1}" if word is None else word
