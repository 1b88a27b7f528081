"""Where the events of one run are in the file: an index in memory, from positions to lines."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple


class Place(NamedTuple):
    """The line of one commit, and which positions it holds; of what the line holds, more may have been taken back since."""

    first: int
    last: int
    offset: int
    length: int
    gap: bool = False


class Pruned(NamedTuple):
    """What was removed: all up to position `at`, whose cursor was `until`; `missing` events, None if that is not known."""

    at: int
    until: str | None
    missing: int | None


@dataclass(slots=True)
class Log:
    """The places of one run, in order. `behind` is the position of its last gap, 0 if there is none."""

    places: list[Place] = field(default_factory=list)
    lasts: list[int] = field(default_factory=list)
    behind: int = 0
    pruned: Pruned | None = None

    def add(self, place: Place) -> None:
        """Add the place of the next commit."""
        self.places.append(place)
        self.lasts.append(place.last)
        if place.gap:
            self.behind = place.last

    def copy(self) -> Log:
        """Return one that stays as this is now."""
        return Log(list(self.places), list(self.lasts), self.behind, self.pruned)

    def wanted(self, after: int, limit: int, most_bytes: int) -> list[Place]:
        """Return the places of about `limit` entries from position `after` + 1 on, and of at most about so many bytes."""
        found: list[Place] = []
        size = 0
        for index in range(bisect_right(self.lasts, after), len(self.places)):
            place = self.places[index]
            found.append(place)
            size += place.length
            if place.last - after >= limit or size >= most_bytes:
                break
        return found

    def oldest(self, upto: int, most_bytes: int) -> tuple[list[Place], bool]:
        """Return the oldest commits that end at or below a position, at most about so many bytes of them; and if there are more."""
        size = 0
        end = bisect_right(self.lasts, upto)
        for index in range(end):
            size += self.places[index].length
            if index and size > most_bytes:
                return self.places[:index], True
        return self.places[:end], False

    def prune(self, pruned: Pruned) -> None:
        """Leave out what was removed."""
        self.drop_below(pruned.at + 1)
        self.pruned = pruned

    def drop_below(self, position: int) -> None:
        """Leave out the commits that end below a position."""
        count = bisect_left(self.lasts, position)
        del self.places[:count], self.lasts[:count]

    def rewind(self, position: int) -> None:
        """Leave out what comes behind a position, of a commit in two parts as well."""
        while self.places and self.places[-1].last > position:
            place = self.places.pop()
            self.lasts.pop()
            if place.first <= position:
                self.add(place._replace(last=position))
        if self.behind > position:
            self.behind = max((place.last for place in self.places if place.gap), default=0)
