"""Asks after what it has received, and shows one event late: what it held when a connection is lost never comes again."""

from typing import Any

from reattach_chaos.mutants.small import ENDS, SmallClient
from reattach_chaos.mutants.world import Stream


class ResumeFromReceived(SmallClient):
    """Must be killed by I2 or I5. Tells no marks, as most clients with this bug."""

    tells_marks = False
    held: dict[str, Any] | None = None

    def admit(self, entry: dict[str, Any]) -> None:
        """Hold an event; show the one that was held, and the settling one at once."""
        held, self.held = self.held, entry
        self.progress()
        for each in (held, entry if entry["type"] in ENDS else None):
            if each is not None:
                super().admit(each)
        self.cursor = entry["cursor"]

    def follow(self, stream: Stream) -> None:
        """Read a new connection with empty hands."""
        self.held = None
        super().follow(stream)
