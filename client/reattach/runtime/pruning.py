"""Retention: which runs are done with, and removing their events step by step. What is removed is named by a gap (stores/base.py).

Key, run id, digest and outcome stay for ever, so that starting the work again is still attaching to it. Only a run that needs
nothing of anybody loses its events: settled long enough ago, and applied to its end by every consumer that ever read it (a run
whose outcome was handed out, and of which nobody ever confirmed an event, counts as applied; contract.md, promise 1).

Each step is one short transaction, so commits of this and of other processes go on in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime

from reattach import errors
from reattach.runtime import listing, outcomes
from reattach.runtime.engine import Engine
from reattach.stores.base import RunRow, Store, StoreLocked


def done_with(
    store: Store, before: datetime, server: str | None = None, profile: str | None = None
) -> Iterator[RunRow]:
    """Yield the runs that settled at `before` or sooner, need nothing, and have events here. Blocks on the journal."""
    for row, applied, answered in listing.weighed(store, store.rows(server, profile)):
        if row.settled_at is None or row.settled_at > before:
            continue
        if outcomes.needs_of(row, applied, answered=answered) == "nothing" and _has_events(store, row):
            yield row


def _has_events(store: Store, row: RunRow) -> bool:
    (first, *_) = store.read(row.run, 0, 1) or (None,)
    return first is not None and not ("gap" in first.element and first.position == row.committed.position)


def moment_before(now: datetime, older_than: object) -> datetime:
    """Return the moment so many seconds ago.

    Raises:
        UsageError: That is no number of seconds, or below 0.
    """
    if isinstance(older_than, bool) or not isinstance(older_than, int | float) or not 0 <= older_than < math.inf:
        raise errors.UsageError(f"older_than={older_than!r}: seconds since the end of a run are needed, 0 or more.")
    return datetime.fromtimestamp(max(now.timestamp() - older_than, 0.0), UTC)


def pruned(store: Store, before: datetime) -> int:
    """Remove the events of all runs of a journal that are done with, and give the room back; return how many runs. Blocks."""
    rows = list(done_with(store, before))
    for row in rows:
        while store.prune(row.run, row.committed.position):
            pass
    while _shrunk(store):
        pass
    return len(rows)


async def prune(engine: Engine, older_than: object) -> int:
    """Remove the events of this server's runs that are done with; return of how many.

    Raises:
        UsageError: `older_than` is no number of seconds.
        CommitFailed, StoreBusy: The journal could not be written; what was removed before stays removed, and is named.
    """
    before = moment_before(engine.clock.wall(), older_than)
    store = engine.store
    rows = await engine.post(lambda: list(done_with(store, before, engine.server, engine.profile.name)))
    for row in rows:
        while await engine.post(lambda row=row: store.prune(row.run, row.committed.position)):  # type: ignore[misc]  # bound now
            pass
    while await engine.post(lambda: _shrunk(store)):
        pass
    return len(rows)


def _shrunk(store: Store) -> bool:
    try:
        return store.compact()
    except StoreLocked:
        return False  # another process is writing: the room is used again, or given back the next time
