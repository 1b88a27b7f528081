"""What this replica has shown of each run, so that a Redis that came back without it is found out.

Kept for the runs that were read or written last. Pure.
"""

from collections import OrderedDict
from dataclasses import dataclass

from reattach_mockserver.logs.base import RunRecord

_KEPT = 20_000  # runs; a few MB


@dataclass(frozen=True, slots=True)
class Place:
    """The last event of a run that was shown: its incarnation, sequence and id."""

    incarnation: int
    sequence: int
    event_id: str


class Shown:
    """The last place of each run."""

    def __init__(self) -> None:
        self._places: OrderedDict[str, Place] = OrderedDict()

    def record(self, run: RunRecord) -> None:
        """Take note that the run was shown, with its cursor."""
        if run.last_id is not None:
            self.event(run.id, run.incarnation, run.last_sequence, run.last_id)

    def event(self, run_id: str, incarnation: int, sequence: int, event_id: str) -> None:
        """Take note that an event was shown."""
        known = self._places.get(run_id)
        if known is None or (incarnation, sequence) > (known.incarnation, known.sequence):
            self._places[run_id] = Place(incarnation, sequence, event_id)
            if len(self._places) > _KEPT:
                self._places.popitem(last=False)
        self._places.move_to_end(run_id)

    def incarnation(self, run_id: str) -> int:
        """Return the newest incarnation of the run that was shown, 1 if none was."""
        known = self._places.get(run_id)
        return 1 if known is None else known.incarnation

    def places(self) -> list[tuple[str, Place]]:
        """Return all places."""
        return list(self._places.items())

    def forget(self, run_id: str) -> None:
        """Forget a run that is gone."""
        self._places.pop(run_id, None)
