"""What all laws read in a history: the server's log of each run, and what each client showed of it, by places.

A *place* is an event's index in the control reader's log of its run. Laws compare places, never sequences or ids: an SSE id and
the event's own id name the same place, and numbers of two epochs are never compared. Nothing here is judged.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from reattach_chaos.history import (
    Applied,
    Committed,
    Delivered,
    Died,
    Exited,
    History,
    Lease,
    Logged,
    Received,
    Record,
    Resume,
    Server,
    Surfaced,
)
from reattach_chaos.history.record import R

CLIENT = "client"
"""Whose application is under test; every other subscriber is to be left alone (I19)."""


class Log:
    """The server's log of one run, as the control reader has it.

    An event is *alive* if it is in the log at the end: not of an older epoch, and no number up to its own was given again later.
    """

    def __init__(self, events: Iterable[Logged]) -> None:
        self.events = list(events)
        self._places: dict[str, int] = {}
        self._ids: dict[str, list[int]] = {}
        self._numbers: dict[str, list[int]] = {}
        self.alive = [False] * len(self.events)
        stands: list[int] = []
        for place, event in enumerate(self.events):
            self._places[event.cursor] = place
            self._places[event.id] = place
            self._ids.setdefault(event.id, []).append(place)
            self._numbers.setdefault(event.cursor, []).append(place)
            # Another epoch begins an empty log; a number that is given again comes behind a tail that is gone.
            while stands and not self._follows(stands[-1], event):
                stands.pop()
            stands.append(place)
        for place in stands:
            self.alive[place] = True

    def _follows(self, place: int, event: Logged) -> bool:
        before = self.events[place]
        return before.epoch == event.epoch and before.sequence < event.sequence

    def place(self, name: str | None) -> int | None:
        """Return the place of an event by its own id or its SSE id; None where the log has none of that name."""
        return None if name is None else self._places.get(name)

    def places(self, name: str, begun: Mapping[str, int], n: int) -> list[int]:
        """Return the places of an event that there were at record `n`: a log that took another's may hold some of its events.

        Args:
            name: By its own id or its SSE id.
            begun: Epoch → the record that it began with.
            n: The record's number.
        """
        known = [place for place in self._ids.get(name, ()) if begun.get(self.events[place].epoch, n) <= n]
        only = self.place(name)
        return known or ([] if only is None else [only])

    def same_number(self, place: int) -> list[int]:
        """Return the earlier places whose number was given again to the event of this place, after a lost tail."""
        return [each for each in self._numbers[self.events[place].cursor] if each < place]

    @property
    def end(self) -> Logged | None:
        """The event that settled the run, None where it is not settled."""
        return next((event for place, event in enumerate(self.events) if event.settles and self.alive[place]), None)

    def name(self, place: int) -> str:
        """Name an event to a person."""
        event = self.events[place]
        return f"event {event.sequence} ({event.cursor})"


@dataclass(slots=True)
class Showing:
    """What one client showed of one run.

    Attributes:
        who: The client.
        run: The run.
        log: Its log.
        shown: Every showing in order, with its place; None where the log has no such event.
        first: Place → the record that showed it first.
        deaths: When a process of this client was killed, or ended by itself.
        leases: When its store was taken (over) by a process.
    """

    who: str
    run: str | None
    log: Log
    shown: list[tuple[Delivered, int | None]] = field(default_factory=list)
    first: dict[int, Delivered] = field(default_factory=dict)
    deaths: list[Died | Exited] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)

    def goes_on(self, gap: Surfaced, place: int) -> bool:
        """Whether the stream goes on before an event, by the word of a gap: it comes again then, by right."""
        until = self.log.place(gap.until)
        return until is None or until < place

    def death_between(self, earlier: Record, later: Record) -> Died | Exited | None:
        """Return the last end of a process between two records of this client, None where it lived on."""
        found = [death for death in self.deaths if earlier.n < death.n < later.n]
        return found[-1] if found else None

    def takeover_between(self, earlier: Record, later: Record) -> Lease | None:
        """Return the last takeover of the store between two records of this client."""
        found = [lease for lease in self.leases if earlier.n < lease.n < later.n]
        return found[-1] if found else None


class Reading:
    """A history as the laws read it."""

    def __init__(self, history: History) -> None:
        self.history = history
        runs: dict[str | None, list[Logged]] = {}
        for event in history.of(Logged):
            if event.by == "control":
                runs.setdefault(event.run, []).append(event)
        self.logs = {run: Log(events) for run, events in runs.items()}
        self._only = _only(self.logs)
        self._followed = _only({each.run for each in history.of(Resume) if each.who == CLIENT})
        self._showings: dict[tuple[str, str | None], Showing] = {}
        self._of: dict[Any, list[Any]] = {}
        self._came: dict[Any, dict[int | None, list[Received]]] = {}
        self._marks: dict[Any, list[tuple[int, int]]] = {}
        self.begun = {each.epoch: each.n for each in history.of(Server) if each.did == "epoch" and each.epoch}
        """Epoch → the number of the record that it began with, of each log that took another's place."""
        for record in history.of(Delivered):
            self._show(record)

    def run(self, record: Record) -> str | None:
        """Return the run that a record is about: its own, or the only one that was played, or that the client asked to stream.

        A client that starts its run need not say which it shows; where it made two, that is the one that it asked for.
        """
        if record.run is not None:
            return record.run
        return self._followed if self._only is None and record.who == CLIENT else self._only

    def log(self, record: Record) -> Log:
        """Return the log of the run that a record is about; an empty one where the control reader has none."""
        return self.logs.get(self.run(record)) or Log(())

    def place(self, record: Record, name: str | None) -> int | None:
        """Return the place of an event that a record names."""
        return self.log(record).place(name)

    def showing(self, who: str, run: str | None) -> Showing:
        """Return what a client showed of a run, which may be nothing."""
        key = (who, run)
        if key not in self._showings:
            ends: list[Died | Exited] = [*self.history.of(Died), *self.history.of(Exited)]
            deaths = [each for each in ends if each.who == who]
            deaths.sort(key=lambda each: each.n)
            leases = [each for each in self.history.of(Lease) if each.who == who]
            self._showings[key] = Showing(who, run, self.logs.get(run) or Log(()), deaths=deaths, leases=leases)
        return self._showings[key]

    def showings(self, who: str = CLIENT) -> list[Showing]:
        """Return what a client showed of every run that was logged."""
        return [self.showing(who, run) for run in self.logs]

    def of(self, kind: type[R], showing: Showing) -> list[R]:
        """Return the records of a kind that are about one client and one run, in order. Not to be changed."""
        key = (kind, showing.who, showing.run)
        if key not in self._of:
            self._of[key] = [
                record
                for record in self.history.of(kind)
                if record.who == showing.who and self.run(record) == showing.run
            ]
        return self._of[key]

    def came(self, showing: Showing, place: int) -> list[Received]:
        """Return what was sent to a client of the event of a place, whole or in part."""
        key = (showing.who, showing.run)
        if key not in self._came:
            found: dict[int | None, list[Received]] = {}
            for record in self.of(Received, showing):
                found.setdefault(showing.log.place(record.id), []).append(record)
            self._came[key] = found
        return self._came[key].get(place, [])

    def mark(self, kind: type[Committed] | type[Applied], showing: Showing, before: int) -> int | None:
        """Return the highest place that a mark of this kind had reached with the record of a number; None: no mark yet."""
        key = (kind, showing.who, showing.run)
        if key not in self._marks:
            highest, marks = -1, []
            for record in self._marking(kind, showing):
                place = showing.log.place(record.id)
                highest = highest if place is None else max(highest, place)
                marks.append((record.n, highest))
            self._marks[key] = marks
        index = bisect_left(self._marks[key], (before + 1,)) - 1
        return self._marks[key][index][1] if index >= 0 else None

    def _marking(
        self, kind: type[Committed] | type[Applied], showing: Showing
    ) -> Iterable[Committed | Applied | Delivered]:
        """Return what tells a mark.

        A kill may come between a commit and the word of it: what a later process shows marked `redelivered` was in the journal.
        """
        told: list[Committed | Applied | Delivered] = [*self.of(kind, showing)]
        begun = [each.n for each in (*showing.deaths, *showing.leases[1:])]
        if kind is Committed and begun:
            told += [record for record, _ in showing.shown if record.redelivered and record.n > min(begun)]
            told.sort(key=lambda record: record.n)
        return told

    def others(self) -> list[str]:
        """Return the subscribers that are not under test."""
        return [who for who in self.history.who() if who != CLIENT]

    def _show(self, record: Delivered) -> None:
        showing = self.showing(record.who, self.run(record))
        place = self._meant(showing, record)
        showing.shown.append((record, place))
        if place is not None:
            showing.first.setdefault(place, record)

    def _meant(self, showing: Showing, record: Delivered) -> int | None:
        """Return the place of what a client showed.

        An event of two logs is of the later one once a gap has said that the stream goes on in it. Where none was told, it is of
        the first whose event had come and was not shown yet: a client may still show what it had before the log changed.
        """
        places = showing.log.places(record.id, self.begun, record.n)
        if len(places) < 2:
            return places[0] if places else None
        gaps = [each for each in self.of(Surfaced, showing) if each.what == "gap" and each.n < record.n]
        behind = [place for place in places if all(showing.goes_on(gap, place) for gap in gaps)]
        came = [place for place in places if any(each.n < record.n for each in self.came(showing, place))]
        left = [place for place in behind or places if place in came] or behind or places
        return next((place for place in left if place not in showing.first), left[-1])


def named(name: str) -> str:
    """Return an id as a sentence has it; an empty one in words."""
    return name or "something without an id (a control event, stream.…, has none)"


def _only(runs: Collection[str | None]) -> str | None:
    return next(iter(runs)) if len(runs) == 1 else None


def code(error: Surfaced) -> str:
    """Return an error's code in snake case, as the command line says it; our classes' names are the same words."""
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in error.reason).lstrip("_")


@lru_cache(maxsize=4)
def read(history: History) -> Reading:
    """Return the reading of a history; the laws share it."""
    return Reading(history)
