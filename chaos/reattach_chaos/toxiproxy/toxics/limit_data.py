"""`limit_data`: closes as soon as the N-th byte has passed, to the byte."""

from dataclasses import dataclass
from typing import ClassVar

from reattach_chaos.toxiproxy.toxics.base import Flow, Site, Toxic, drop, give, setting, take


@dataclass(frozen=True, slots=True)
class LimitData(Toxic):
    """Let `bytes` bytes pass, counted from when this toxic is on the connection, then close.

    0 (or less) closes when the first chunk comes; so does a limit that was lowered below what has passed.
    """

    kind: ClassVar[str] = "limit_data"

    limit_bytes: int = setting("bytes")

    def flow(self, site: Site) -> Flow:
        """Count what passes."""
        while chunk := (yield from take()):
            piece = chunk.data[: max(self.limit_bytes - site.passed, 0)]
            # Counted, and the rest gone, before it is given: stopped in between, the stage passes on what is still held.
            site.passed += len(piece)
            yield from drop(keep=len(piece))
            if piece:
                yield from give(piece)
            if site.passed >= self.limit_bytes:
                return
