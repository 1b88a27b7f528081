"""`told`: a history with what a test says that its client showed. Pure.

A test tells it when all is over, so each showing is put where it can first have been: behind the arrival of its event, and
behind the showing before it.
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
    for shown in ids:
        came = next(
            (
                place
                for place, record in enumerate(found)
                if place >= since and isinstance(record, Received) and record.id == shown
            ),
            max(since - 1, 0),
        )
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
