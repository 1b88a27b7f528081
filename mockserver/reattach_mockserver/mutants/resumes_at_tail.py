"""A server that goes on with what comes next, whatever the cursor."""

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.cursor_taken import WrongCursor


class ResumesAtTail(WrongCursor):
    """See the module."""

    id = "resumes-at-tail"
    words = "goes on with what comes next, whatever the cursor"
    breaks = ("RS-69", "RS-12", "RS-18")
    found_by = ("I5",)
    anomaly = "lost"

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Begin at the end, where a cursor came."""
        return word if cursor is None else f"{run.epoch}.{max(run.last_sequence - 1, 0)}"
