"""The transition table: rows, tried in order; the first that applies decides.

A row is a function of state and input that appends effects and returns the new state, or None where it does not apply. An input
that no row takes changes nothing: the world's inputs are total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from reattach.core.messages import Effect
from reattach.core.state import Mode, State

Act = Callable[[State, Any, list[Effect]], State | None]

ANY: tuple[Mode, ...] = ("detached", "attaching", "live", "waiting", "polling", "resyncing", "parked", "ending")
FOLLOWING: tuple[Mode, ...] = ("attaching", "live", "waiting", "polling", "parked")


class Row(NamedTuple):
    """One row: in which modes, on which input, doing what."""

    name: str
    modes: frozenset[Mode]
    on: type
    act: Act


class Table:
    """Rows in order, found by mode and input."""

    __slots__ = ("_found", "rows")

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        self._found: dict[tuple[Mode, type], tuple[Act, ...]] = {}

    def acts(self, mode: Mode, kind: type) -> tuple[Act, ...]:
        """Return what to try, in order."""
        key = (mode, kind)
        found = self._found.get(key)
        if found is None:
            found = tuple(row.act for row in self.rows if row.on is kind and mode in row.modes)
            self._found[key] = found
        return found

    def without(self, name: str) -> Table:
        """Return the table with the rows of this name left out (for tests that show that a row matters)."""
        return Table(row for row in self.rows if row.name != name)


def collector(rows: list[Row]) -> Callable[..., Callable[[Act], Act]]:
    """Return the decorator that adds a function to `rows`: `@row(Input, "mode", …)`."""

    def row(on: type, *modes: Mode) -> Callable[[Act], Act]:
        def add(act: Act) -> Act:
            rows.append(Row(act.__name__, frozenset(modes), on, act))
            return act

        return add

    return row
