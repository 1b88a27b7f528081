"""`told`: a history with what a test says that its client showed. Pure.

A test tells it when all is over, so each showing is put where it must have been: behind the arrival of its whole event, and behind
the showing before it. Of several arrivals it is the last, since a reset may have thrown the others away: the last but one for the
last showing but one, and so on. Only what never came whole can have been shown of a part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reattach_chaos.history import Case, Delivered, Exited, Finished, History, Logged, Received, Record


def id_of(shown: Any) -> str:
    """Return the id of an event as a test names it: the id, a mapping with one, or an object with one.

    Raises:
        TypeError: It has none.
    """
    found = (
        shown.get("id")
        if isinstance(shown, Mapping)
        else shown
        if isinstance(shown, str)
        else getattr(shown, "id", None)
    )
    if not isinstance(found, str):
        raise TypeError(f"check() takes the ids of the events that were shown, in order; {shown!r} has none")
    return found


def told(records: Iterable[Record], ids: list[str], run: str, case: Case) -> History:
    """Return the history with the showings in it, and the end that the last of them tells."""
    known = [case, *(record for record in records if not isinstance(record, Case))]
    cursors = {each.id: each.cursor for each in known if isinstance(each, Logged)}
    whole, parts = _arrivals(known, whole=True), _arrivals(known, whole=False)
    left = Counter(cursors.get(shown, shown) for shown in ids)
    behind: dict[int, list[Delivered]] = {}
    since = 0
    for shown in ids:
        name = cursors.get(shown, shown)
        came = whole.get(name, [])
        place = came[-min(left[name], len(came))] if came else parts.get(name, [0])[0]
        left[name] -= 1
        since = max(since, place)
        cause = known[since]
        conn = cause.conn if isinstance(cause, Received) else None
        behind.setdefault(since, []).append(Delivered(id=shown, run=run, conn=conn, at_ms=cause.at_ms, who="client"))
    found: list[Record] = [each for place, record in enumerate(known) for each in (record, *behind.get(place, ()))]
    end = max((record.at_ms for record in found), default=0.0)
    last = next(
        (
            each
            for each in found
            if isinstance(each, Logged) and each.settles and ids and ids[-1] in (each.id, each.cursor)
        ),
        None,
    )
    if last is not None and last.settles is not None:
        found.append(Finished(status=last.settles, evidence="event", run=run, at_ms=end, who="client"))
    found.append(Exited(code=0, run=run, at_ms=end, who="client"))
    return History(replace(record, n=number) for number, record in enumerate(found, 1))


def _arrivals(records: list[Record], *, whole: bool) -> dict[str, list[int]]:
    """Return the places of the arrivals of each event, whole or in part."""
    found: dict[str, list[int]] = {}
    for place, record in enumerate(records):
        if isinstance(record, Received) and record.whole is whole:
            found.setdefault(record.id, []).append(place)
    return found
