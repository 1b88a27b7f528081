"""I22, coverage, over a suite: every fault, position, phase and kind of event fired at least once.

"Sometimes" is a law, too: a suite in which no stall ever fired proves nothing about stalls, however green it is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reattach_chaos.history import CutFired, CutPlanned, History

AXES = ("fault", "position", "phase", "event_kind")


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often each value of each axis fired, and which of the planned values never did."""

    fired: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether all that was wanted fired."""
        return not any(self.missing.values())

    def sentence(self) -> str:
        """Return one line for a person; empty where nothing is missing."""
        parts = [f"{axis.replace('_', ' ')} {', '.join(words)}" for axis, words in self.missing.items() if words]
        return f"never fired: {'; '.join(parts)}" if parts else ""


def coverage(histories: Iterable[History], wanted: Mapping[str, Iterable[str]] | None = None) -> Coverage:
    """Count what fired over a suite.

    Args:
        histories: All cases.
        wanted: For each axis ("fault", "position", "phase", "event_kind") the words that must have fired; None: what was planned.
    """
    tally = Tally()
    for history in histories:
        tally.add(history)
    return tally.coverage(wanted)


class Tally:
    """Counts while a suite is played, so that no history need be kept for it."""

    def __init__(self) -> None:
        self._planned: dict[str, set[str]] = {axis: set() for axis in AXES}
        self._fired: dict[str, Counter[str]] = {axis: Counter() for axis in AXES}

    def add(self, history: History) -> None:
        """Count a case."""
        done = {record.cut for record in history.of(CutFired)}
        for cut in history.of(CutPlanned):
            for axis, word in _words(cut).items():
                self._planned[axis].add(word)
                self._fired[axis][word] += cut.cut in done

    def coverage(self, wanted: Mapping[str, Iterable[str]] | None = None) -> Coverage:
        """Return what has fired so far; see `coverage`."""
        fired, planned = self._fired, self._planned
        if wanted is not None:
            planned = {axis: set(wanted.get(axis, ())) for axis in AXES}
        missing = {axis: tuple(sorted(word for word in planned[axis] if not fired[axis][word])) for axis in AXES}
        return Coverage({axis: dict(counts) for axis, counts in fired.items()}, missing)


def _words(cut: CutPlanned) -> dict[str, str]:
    words = {"fault": cut.fault, "position": cut.position, "phase": cut.phase, "event_kind": cut.event_kind}
    return {axis: word for axis, word in words.items() if word}
