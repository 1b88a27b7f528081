"""`told`: a history with what a test says that its client showed. Pure.

A test tells it when all is over, so each showing is put where it must have been: behind the arrival of its whole event, and behind
the showing before it. Of several arrivals it is the last, since a reset may have thrown the others away: the last but one for the
last showing but one, and so on. Only what never came whole can have been shown of a part.
"""

from __future__ import annotations

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
    found = [case, *(record for record in records if not isinstance(record, Case))]
    since = 0
    for number, shown in enumerate(ids):
        came = _arrival(found, shown, since, ids.count(shown) - ids[:number].count(shown))
        arrival = found[came]
        conn = arrival.conn if isinstance(arrival, Received | Delivered) else None
        found.insert(came + 1, Delivered(id=shown, run=run, conn=conn, at_ms=arrival.at_ms, who="client"))
        since = came + 2
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


def _arrival(found: list[Record], shown: str, since: int, left: int) -> int:
    """Return the place of the record that a showing stands behind.

    Args:
        found: All records, with the showings before.
        shown: The id.
        since: The first place that is behind them.
        left: So many showings of it are to come, with this one.
    """
    names = {shown} | {each.cursor for each in found if isinstance(each, Logged) and each.id == shown}
    arrivals = [
        (place, each.whole)
        for place, each in enumerate(found)
        if place >= since and isinstance(each, Received) and each.id in names
    ]
    whole = [place for place, complete in arrivals if complete]
    if whole:
        return whole[-min(left, len(whole))]
    return arrivals[0][0] if arrivals else max(since - 1, 0)
