"""What the statements need of a database: a driver's connection, or something of a store's that looks like one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol


class Rows(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, a tuple; None behind the last."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Go through the rows that are left."""
        ...


class Connection(Protocol):
    """A connection inside a transaction. Placeholders are `?`, or `?1`, `?2` … where one is used twice."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Rows:
        """Run one statement."""
        ...
