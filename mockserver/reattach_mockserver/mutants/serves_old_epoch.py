"""A server that takes the cursor of a log that was replaced for one of the new log."""

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.mutants.cursor_taken import WrongCursor


class ServesOldEpoch(WrongCursor):
    """See the module."""

    id = "serves-old-epoch"
    words = "takes the cursor of a log that was replaced for one of the new log"
    breaks = ("RS-35",)
    found_by, anomaly = ("I5",), "silent gap"

    def taken(self, run: RunRecord, word: str | None, cursor: Cursor | None) -> str | None:
        """Read the number in the new log."""
        ours = cursor is not None and cursor.epoch.rpartition("-")[0] == run.epoch.rpartition("-")[0]
        return f"{run.epoch}.{min(cursor.sequence, run.last_sequence)}" if cursor is not None and ours else word
