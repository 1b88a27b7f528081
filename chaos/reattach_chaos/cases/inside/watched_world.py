"""`WatchedWorld`: the small client's surroundings, where its own instants are seen and struck; it says its marks itself.

Its state is saved as a whole: events that are new in it are received before and committed behind, and so the mark.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reattach_chaos.cases.inside.striker import StoreStruck, Striker
from reattach_chaos.mutants.http_world import HttpWorld
from reattach_chaos.mutants.world import StoreBroken
from reattach_chaos.schedules import Place


class WatchedWorld(HttpWorld):
    """See the module.

    Args:
        url: See `HttpWorld`.
        state: See there.
        striker: The faults.
        rest: See there.
    """

    def __init__(self, url: str, state: Path, *, striker: Striker, **rest: Any) -> None:
        super().__init__(url, state, **rest)
        self._striker = striker
        self._saved = self._shown = 0
        self._applied = 0

    def load(self) -> dict[str, Any]:
        """Return what was saved."""
        state = super().load()
        self._saved, self._applied = len(state.get("journal", ())), state.get("applied", 0)
        return state

    def save(self, state: Mapping[str, Any], token: int | None) -> None:
        """Make this durable; see the seam."""
        striker, journal, applied = self._striker, state["journal"], state["applied"]
        new = len(journal) > self._saved
        if new:
            striker.meet(Place.RECEIVED, _number(journal[-1]))
            try:
                striker.write()
            except StoreStruck as struck:
                raise StoreBroken from struck
        super().save(state, token)
        if new:
            self._saved = len(journal)
            striker.meet(Place.COMMITTED, _number(journal[-1]))
        if applied > self._applied:
            self._applied = applied
            striker.meet(Place.APPLIED, _number(journal[applied - 1]))

    def say(self, line: Mapping[str, Any]) -> None:
        """Show a line to the application."""
        super().say(line)
        if line.get("kind") == "rendered":
            self._striker.meet(Place.DELIVERED, _number({"cursor": line["id"]}))


def _number(entry: Mapping[str, Any]) -> int:
    return int(str(entry["cursor"]).rpartition(".")[2])
