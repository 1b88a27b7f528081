"""The matrix: positions down, faults across, in each square what became of the cases there."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from reattach_chaos.checkers.verdict import Word
from reattach_chaos.report.suite import Played
from reattach_chaos.schedules import Fault, Place, Planned

WORST: tuple[Word, ...] = ("invalid", "unknown", "valid")
SIGNS = {"invalid": "✗", "unknown": "?", "valid": "✓"}


class Square(NamedTuple):
    """All cases with one fault at one place."""

    counts: Counter[Word]
    cases: tuple[str, ...]

    @property
    def word(self) -> Word:
        """The worst verdict in it."""
        return next(word for word in WORST if self.counts[word])

    def words(self) -> str:
        """Return the counts in words, worst first."""
        return ", ".join(f"{self.counts[word]} {word}" for word in WORST if self.counts[word])


class Matrix(NamedTuple):
    """Squares by place and fault, with the places and faults that occur, in the order of the chaos page."""

    places: tuple[Place, ...]
    faults: tuple[Fault, ...]
    squares: dict[tuple[Place, Fault], Square]


def matrix(cases: Iterable[Played], *, by: str = "") -> Matrix:
    """Return the matrix of the cases; a case with several faults stands in each of their squares.

    Args:
        cases: The cases.
        by: A phase: only faults of this phase; "" for all.
    """
    counts: dict[tuple[Place, Fault], Counter[Word]] = {}
    ids: dict[tuple[Place, Fault], list[str]] = {}
    for played in cases:
        for square in sorted({_square(each) for each in played.schedule.faults if by in ("", each.phase)}):
            counts.setdefault(square, Counter())[played.verdict.word] += 1
            ids.setdefault(square, []).append(played.id)
    squares = {square: Square(found, tuple(ids[square])) for square, found in counts.items()}
    return Matrix(
        tuple(place for place in Place if any(place == at for at, _ in squares)),
        tuple(fault for fault in Fault if any(fault == kind for _, kind in squares)),
        squares,
    )


def _square(planned: Planned) -> tuple[Place, Fault]:
    return planned.at.place, planned.fault
