"""Knows an event by its text: of two equal words the second is dropped."""

from typing import Any

from reattach_chaos.mutants.small import SmallClient


class DedupeByText(SmallClient):
    """Must be killed by I1."""

    def identity(self, entry: dict[str, Any]) -> str:
        """Return the event's text; what has none is known by its own id."""
        text = entry["data"].get("text")
        return super().identity(entry) if text is None else f"{entry['type']} {text}"

    def hole(self, entry: dict[str, Any]) -> bool:
        """Return False: what was dropped would look like a hole."""
        return False
