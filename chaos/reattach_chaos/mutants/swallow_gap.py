"""Sees that events are missing, and goes on."""

from typing import Any

from reattach_chaos.mutants.small import SmallClient


class SwallowGap(SmallClient):
    """Must be killed by I1."""

    def hole(self, entry: dict[str, Any]) -> bool:
        """Return False, whatever is missing."""
        return False
