"""Removing events that nobody needs any more, in steps that hold nobody up for long. SQL and nothing else.

What may be removed is the caller's to know. Where events were, a gap is left (base.py, law 8), so at every moment, also when the
process dies between two steps, the journal says what it no longer has; and its committed position, which is the highest batch or
gap, stays where it was.
"""

from __future__ import annotations

import json

from reattach.stores.tables.connection import Connection

STEP_CHARACTERS = 4 << 20  # of journal text a step: some tens of milliseconds


def prune(connection: Connection, run: int, upto: int, now: str) -> bool:
    """Remove a step's worth of the oldest events up to `upto`; return whether there are more."""
    last, more = _step(connection, run, upto)
    gaps = connection.execute(
        "SELECT at, after, until, missing, reason FROM reattach_gaps WHERE run = ? AND at <= ? ORDER BY at",
        (run, last if more else upto),
    ).fetchall()
    before = [gap for gap in gaps if gap[1] is None and gap[4] == "expired"][:1]
    if last == 0 and gaps == before:
        return False  # nothing is left but, perhaps, the gap of an earlier pruning
    cursor = _cursor(connection, run, last)
    if gaps and gaps[-1][0] > last:
        last, cursor = gaps[-1][0], gaps[-1][2]
    known = gaps == before and all(missing == at for at, _, _, missing, _ in before)
    connection.execute("DELETE FROM reattach_batches WHERE run = ? AND batch <= ?", (run, last))
    connection.execute("DELETE FROM reattach_gaps WHERE run = ? AND at <= ?", (run, last))
    connection.execute(
        """INSERT INTO reattach_gaps (run, at, reason, after, until, missing, snapshot, noticed_at)
        VALUES (?, ?, 'expired', NULL, ?, ?, NULL, ?)""",
        (run, last, cursor, last if known else None, now),
    )
    return more


def _step(connection: Connection, run: int, upto: int) -> tuple[int, bool]:
    """Return the last position of the batches that one step removes, 0 if there are none, and whether more remain."""
    last = size = 0
    for batch, length in connection.execute(
        "SELECT batch, length(events) FROM reattach_batches WHERE run = ? AND batch <= ? ORDER BY batch", (run, upto)
    ).fetchall():
        if size and size + length > STEP_CHARACTERS:
            return last, True
        last, size = batch, size + length
    return last, False


def _cursor(connection: Connection, run: int, batch: int) -> str | None:
    found = connection.execute(
        "SELECT events FROM reattach_batches WHERE run = ? AND batch = ?", (run, batch)
    ).fetchone()
    cursor: str | None = json.loads(found[0])[-1].get("cursor") if found is not None else None
    return cursor
