"""What every store decides alike: whether a write may be kept, which texts it brings, and what becomes of a run's row.

Pure functions, from what a store has read; the store does what they say. A write that makes no sense at all is a bug of ours, found
before anything is touched.
"""

from __future__ import annotations

import json
import re
from typing import Any

from reattach.model import Gap
from reattach.stores.base import GapNote, Refusal, RunRow, StoreConflict, Write
from reattach.stores.entry import bare_element, element, gap_element

_LONE = re.compile("[\ud800-\udfff]")


def length_of(write: Write) -> int:
    """Return how many positions a write takes.

    Raises:
        ValueError: Its mark is not where its events end, or it brings both events and a gap: there would be a hole.
    """
    if write.gap is not None and write.batch:
        raise ValueError("a write brings events or one gap, never both")
    length = 1 if write.gap is not None else len(write.batch)
    if write.mark.position != write.prev.position + length:
        raise ValueError(
            f"a write of {length} positions after {write.prev.position} cannot end at {write.mark.position}: "
            "the journal would have a hole"
        )
    return length


def batch_json(write: Write) -> str:
    """Return the events of a write as the text of one JSON array."""
    text = f"[{','.join(map(bare_element if write.bare else element, write.batch))}]"
    # A vendor may escape half of a surrogate pair. Python holds it, UTF-8 does not: it is escaped again. `isascii` and the
    # encoder are C loops; the expression runs only on text that really has one.
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = plain(text)
    return text


def plain(text: str) -> str:
    """Return JSON text with every lone surrogate escaped, so that it can be stored as UTF-8."""
    return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def gap_entry(note: GapNote) -> dict[str, Any]:
    """Return the parsed journal element of a gap."""
    gap = Gap(
        run_id="", reason=note.reason, after=note.after, until=note.until, missing=note.missing, snapshot=note.state
    )
    found: dict[str, Any] = json.loads(gap_element(gap))
    return found


def refusal(write: Write, position: int, token: int | None) -> Refusal | None:
    """Return why a write may not be kept by a journal that stands at `position` under `token`, or None.

    Both rules are needed: without the predecessor a late commit of one owner leaves a hole, without the token an owner that was
    taken over goes on writing (explored by the model of two processes and one journal).
    """
    if token != write.token:
        return Refusal("fenced", f"the lease token is {token}, this write has {write.token}")
    if position != write.prev.position:
        return Refusal("stale", f"the journal stands at {position}, this write follows {write.prev.position}")
    return None


def joined(
    mine: RunRow, twin: RunRow | None, run_id: str, session_id: str | None, status: str
) -> tuple[int, dict[str, Any]]:
    """Return which row a create's answer is kept in, and what changes there.

    Args:
        mine: The intent's row.
        twin: The row that has the run id already, if any (it was attached by id meanwhile); the two become that one.
        run_id: The answer's.
        session_id: The answer's, None if it names none.
        status: The answer's.

    Raises:
        StoreConflict: The key has another run, or the run another key.
    """
    if mine.run_id not in (None, run_id):
        raise StoreConflict(f"key {mine.key!r} already has run {mine.run_id!r}, it cannot also be {run_id!r}")
    row = mine
    changes: dict[str, Any] = {"run_id": run_id, "request": None}
    if twin is not None and twin.run != mine.run:
        if twin.key is not None and mine.key is not None:
            raise StoreConflict(f"run {run_id!r} already has key {twin.key!r}, it cannot also have {mine.key!r}")
        row = twin
        changes |= {"key": twin.key or mine.key, "continues": twin.continues or mine.continues}
        if twin.key is None:  # else its own digest and time stay: they are what its key is compared with
            changes |= {"request_sha256": mine.request_sha256, "sent_at": mine.sent_at}
    if session_id is not None:
        changes["session_id"] = session_id
    if row.outcome is None:  # a run whose end is known is not made unfinished by a create that was answered late
        changes["status"] = status
    return row.run, changes


def forgettable(row: RunRow) -> bool:
    """Return whether a row says nothing: an intent without an answer, or an id that somebody once asked for, and no more."""
    return row.run_id is None or (
        row.key is None
        and row.continues is None
        and row.status == "unknown"
        and row.committed.position == 0
        and row.outcome is None
        and not row.needs
    )
