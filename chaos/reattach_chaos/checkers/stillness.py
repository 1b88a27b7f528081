"""When the last fault was, and what a client without an end did after it: it tried on, or did nothing. Not judged here."""

from dataclasses import dataclass

from reattach_chaos.checkers.ending import Ending, ending
from reattach_chaos.checkers.reading import Showing, read
from reattach_chaos.checkers.refusals import rows
from reattach_chaos.history import (
    Connect,
    CutFired,
    Delivered,
    Died,
    History,
    Record,
    Request,
    Resume,
    Server,
    Status,
    Store,
)

FAULTS: tuple[type[Record], ...] = (CutFired, Server, Store, Died)
_TRIES: tuple[type[Record], ...] = (Connect, Request, Resume, Delivered, Status)


@dataclass(frozen=True, slots=True)
class Behind:
    """A client that has neither ended nor caught up.

    Attributes:
        showing: What it showed.
        last: The last event that it showed is before this place.
        since: The last fault; None: there was none.
        tries: What the client did after that, the latest last.
        ended: How its watch stands.
    """

    showing: Showing
    last: int
    since: Record | None
    tries: tuple[Record, ...]
    ended: Ending


STALLS = frozenset({"stall", "half-open"})


def slept_ms(history: History, earlier: Record, later: Record) -> float:
    """Return for how long the client's machine slept between two records.

    The word of a sleep stands before it or behind it, and nothing is recorded meanwhile: it is the longer of the two gaps beside
    its record.
    """
    slept, records = 0.0, list(history) if any(each.fault == "suspend" for each in history.of(CutFired)) else []
    for before, record, after in zip(records, records[1:], [*records[2:], later], strict=False):
        if isinstance(record, CutFired) and record.fault == "suspend" and earlier.n < record.n <= later.n:
            slept += max(record.at_ms - before.at_ms, after.at_ms - record.at_ms)
    return slept


def held_by_a_stall(behind: Behind) -> bool:
    """Whether a client has done nothing since its connection fell silent."""
    return isinstance(behind.since, CutFired) and behind.since.fault in STALLS and not behind.tries


def last_fault(history: History) -> Record | None:
    """Return the last thing that was done to the client, its server, its store or its connection."""
    return max((record for kind in FAULTS for record in history.of(kind)), key=lambda record: record.n, default=None)


def behind(history: History) -> list[Behind]:
    """Return the showings of the client under test that came to no end.

    One that asks without end for what is refused for good is not behind: it will never have it, and that is I15's to tell.
    """
    reading, since, found = read(history), last_fault(history), []
    start = 0 if since is None else since.n
    for showing in reading.showings():
        how = ending(history, showing)
        if how not in (Ending.STOPPED, Ending.OPEN):
            continue
        missing = [
            place for place, alive in enumerate(showing.log.alive) if alive and place > max(showing.first, default=-1)
        ]
        if not missing and showing.log.end is None:
            continue  # live and caught up
        if len(rows(reading, showing)[-1]) > history.case.permanent_tries:
            continue
        tries = [
            record for kind in _TRIES for record in history.of(kind) if record.who == showing.who and record.n > start
        ]
        tries.sort(key=lambda record: record.n)
        found.append(Behind(showing, min(missing, default=len(showing.log.events)), since, tuple(tries), how))
    return found


def quiet_ms(history: History, behind: Behind) -> float:
    """Return for how long the client had done nothing when the history ended."""
    last = max((record.at_ms for record in history), default=0.0)
    moment = behind.tries[-1] if behind.tries else behind.since
    return last - (0.0 if moment is None else moment.at_ms)
