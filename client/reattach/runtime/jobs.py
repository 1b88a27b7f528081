"""A job: the run that was started, and the runs that went on from its pauses. Which of them is the newest.

The journal knows what was answered here. What somebody else answered, from another journal, is asked of the server, as far as it
says: a pause that is over for others is over for us, and a journal without a network still gives the newest run that it knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reattach.model import Status
from reattach.profiles.base import Reading, Unreadable
from reattach.runtime import asking
from reattach.runtime.calls import Limit, Refused
from reattach.stores.base import RunRow, Store

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine

RUNS = 1_000
"""More runs of one job are a server that goes round in circles."""


def continuation(store: Store, row: RunRow) -> RunRow | None:
    """Return the run that goes on from a paused one, as the journal knows it; one with an id before one that waits for it."""
    if row.run_id is None:
        return None
    rows = store.continuing(row.server, row.profile, row.run_id)
    return next((each for each in rows if each.run_id is not None), rows[0] if rows else None)


def newest(store: Store, row: RunRow) -> RunRow:
    """Return the newest run of the row's job that the journal knows. Blocks on the journal."""
    for _ in range(RUNS):
        after = continuation(store, row) if row.status == Status.REQUIRES_ACTION else None
        if after is None:
            break
        row = after
    return row


async def newest_anywhere(engine: Engine, row: RunRow) -> RunRow:
    """Return the newest run of the row's job; where the journal ends with a pause, the server is asked who answered it.

    Best effort: a server that does not answer changes nothing.
    """
    for _ in range(RUNS):
        row = await engine.post(lambda row=row: newest(engine.store, row))  # type: ignore[misc]  # bound now
        if row.run_id is None or row.status != Status.REQUIRES_ACTION:
            return row
        reading = await look(engine, row.run_id)
        if reading is None or reading.continued_by is None:
            return row
        row = await adopt(engine, row.run_id, reading.continued_by)
    return row


async def look(engine: Engine, run_id: str) -> Reading | None:
    """Return what the server says of a run now, None if it does not answer at once."""
    try:
        answer = await asking.asked(engine, engine.profile.status(run_id), Limit(attempts=1))
        return engine.profile.reading(run_id, answer.body)
    except (Refused, Unreadable):
        return None


async def adopt(engine: Engine, paused: str, run_id: str) -> RunRow:
    """Note that a paused run was continued by another, whoever did it, and return that one's row with its status."""
    reading = await look(engine, run_id)

    def work() -> RunRow:
        store = engine.store
        row = store.adopt(engine.server, engine.profile.name, run_id, continues=paused)
        if reading is None or row.outcome is not None:
            return row
        return store.created(row.run, run_id=run_id, session_id=reading.session_id, status=reading.status.value)

    return await engine.post(work)
