"""The gate's history, counted: what was planned, what fired, what was on the way. Pure.

Planned is what the log asks for, not only what the gate came to know of: a boundary that no connection ever reached was planned and
did not fire.

Checked by tests/chaos/demo/test_cuts.py.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

FAULTS = ("fin", "rst", "stall")


@dataclass(slots=True, kw_only=True)
class Cuts:
    """A history so far; `take` adds records as they come."""

    fired: dict[str, set[int]] = field(default_factory=lambda: {fault: set() for fault in FAULTS})
    latest: dict[str, str] = field(default_factory=dict)
    """Fault → id of the event that it was last fired after."""
    during_replay: int = 0
    lost_answers: int = 0
    connections: int = 0
    creates: int = 0
    forwarded: set[tuple[str, int, str]] = field(default_factory=set)
    """(lane, sequence, sha256) of every event that crossed the gate."""
    troubles: list[str] = field(default_factory=list)

    def take(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records of the history, in order."""
        for record in records:
            match record:
                case {"kind": "connect"}:
                    self.connections += 1
                case {"kind": "request", "route": "create"}:
                    self.creates += 1
                case {"kind": "event", "lane": lane, "sequence": sequence, "sha256": sha256}:
                    self.forwarded.add((lane, sequence, sha256))
                case {"kind": "cut.fired", "route": "create"}:
                    self.lost_answers += 1
                case {"kind": "cut.fired", "fault": fault, "sequence": sequence}:
                    self.fired[fault].add(sequence)
                    self.latest[fault] = record["id"]
                    self.during_replay += bool(record["replay"])
                case {"kind": "trouble", "message": message}:
                    self.troubles.append(message)

    def count(self, fault: str) -> int:
        """Return at how many boundaries this fault fired."""
        return len(self.fired[fault])

    def unfired(self, fault: str, events: int) -> list[int]:
        """Return the sequences, of a log of so many events, after which this fault never came."""
        return [sequence for sequence in range(1, events + 1) if sequence not in self.fired[fault]]
