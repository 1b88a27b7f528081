"""`History`: the records of one case, in order, with the few ways in which a law looks at them.

A value: it is made once and read by all laws. It sorts nothing and concludes nothing; the records stand in the order of their
numbers, which is the order in which they were recorded on one clock.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from reattach_chaos.history.case import Case
from reattach_chaos.history.record import R, Record

D = TypeVar("D")


class History:
    """All records of a case.

    Args:
        records: In order. Where one has no number, it gets its place, so that a history can be written by hand in a test.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self._records = tuple(_numbered(records))
        self._by_kind: dict[type[Record], list[Any]] = {}
        for record in self._records:
            self._by_kind.setdefault(type(record), []).append(record)

    def __iter__(self) -> Iterator[Record]:
        """Return the records in order."""
        return iter(self._records)

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self._records)

    @property
    def case(self) -> Case:
        """The case and its terms; default terms where the history begins without."""
        return next(iter(self.of(Case)), _UNNAMED)

    def of(self, kind: type[R]) -> list[R]:
        """Return the records of one kind, in order. Not to be changed."""
        return self._by_kind.get(kind, [])

    def who(self) -> list[str]:
        """Return the clients and further subscribers that the history speaks of, in order of appearance."""
        return [each for each in dict.fromkeys(record.who for record in self._records) if each not in OURS]


OURS = frozenset({"gate", "server", "control"})
_UNNAMED = Case(id="unnamed")


def _numbered(records: Iterable[Record]) -> Iterator[Record]:
    for place, record in enumerate(records, 1):
        yield record if record.n else replace(record, n=place)
