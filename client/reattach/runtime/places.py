"""keep="cursor": what the journal does not have. Only places are on disk; the server is asked after the applied one.

So what was handed out and not confirmed comes from the server again, marked. Each function reads the journal, and blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reattach import errors
from reattach.core.messages import Mark
from reattach.profiles.base import Profile
from reattach.stores.base import RunRow, Store

MAIN = "main"


def is_bare(store: Store, run: int) -> bool:
    """Return whether the journal holds only places of a run's newest events, whichever client wrote them."""
    return any(map(_bare, (entry.element for entry in store.newest(run, 1))))


def _bare(element: Mapping[str, Any]) -> bool:
    return "gap" not in element and "event" not in element and "data" not in element


def owes(store: Store, row: RunRow) -> bool:
    """Return whether something that is committed was not confirmed, and so must come again from the server."""
    return store.applied(row.run, MAIN) < row.highest


def applied_mark(store: Store, profile: Profile, row: RunRow) -> Mark:
    """Return the place of the applied mark: where the server is asked after.

    At the beginning it still names the epoch that was followed, or a log that was replaced meanwhile would go unnoticed.
    """
    applied = store.applied(row.run, MAIN)
    if applied >= row.committed.position:
        return row.committed
    for entry in store.read(row.run, applied - 1, 1) if applied else ():
        if entry.position == applied:
            element = entry.element
            cursor = element.get("cursor")
            place = profile.place(cursor) if cursor is not None else None
            epoch, sequence = place or (element.get("epoch"), element.get("sequence") or 0)
            return Mark(applied, epoch, sequence, None if "gap" in element else element["id"], cursor)
    return Mark(epoch=row.committed.epoch)


def refuse_view(run_id: str) -> errors.UsageError:
    """Return the error of who asks for the fold of a journal that has no events."""
    return errors.UsageError(
        f"the journal keeps only the cursor of run {run_id!r}, so there are no events to make a view of.",
        run_id=run_id,
        hint='Use views(), which begins with the server\'s snapshot, or a client with keep="events".',
    )


def refuse_others(run_id: str) -> errors.UsageError:
    """Return the error of who would read beside the one consumer that such a run can have."""
    return errors.UsageError(
        f"the journal keeps only the cursor of run {run_id!r}: there is the consumer 'main' alone, and nothing to read again.",
        run_id=run_id,
        hint='Leave consumer= and after= out, or use a client with keep="events" and a journal of its own.',
    )
