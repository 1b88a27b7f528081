"""`Scribe`: writes the history of one simulated case, on the virtual clock.

Only what somebody outside of the client saw is written: by the network, the server, the disk and the application. The client is
never asked.
"""

from collections.abc import Callable
from typing import Any

from reattach_chaos.history import History, Record


class Scribe:
    """The records of one case while it is played.

    Args:
        now: The clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.life = 1
        """The process of the client that lives now."""
        self._now = now
        self._records: list[Record] = []

    def write(self, kind: type[Record], **facts: Any) -> None:
        """Record what was seen now; `life` is the client's unless it is given."""
        facts.setdefault("life", self.life)
        self._records.append(kind(at_ms=round(self._now() * 1000, 3), n=len(self._records) + 1, **facts))

    def history(self) -> History:
        """Return all that was recorded."""
        return History(self._records)
