"""With keep="cursor": only the places of events are kept, and only from the applied mark on. SQL and nothing else.

A commit is a row of `reattach_batches` as always, with bare elements. What lies below every consumer's mark is dropped commit by
commit, so that the file does not grow; the batch that holds a mark stays, since its cursor is what the server is asked after.
"""

from __future__ import annotations

import json

from reattach.core.messages import Mark
from reattach.stores.base import RunRow
from reattach.stores.tables.connection import Connection
from reattach.stores.tables.runs import row


def trim(connection: Connection, run: int) -> None:
    """Drop the commits that end below the lowest mark."""
    connection.execute(
        """DELETE FROM reattach_batches WHERE run = ?1 AND batch <
            coalesce((SELECT min(applied) FROM reattach_marks WHERE run = ?1 AND consumer <> ''), 0)""",
        (run,),
    )


def rewind(connection: Connection, run: int, mark: Mark, now: str) -> RunRow:
    """Let the journal stand at `mark`; remember up to where it stood."""
    stood = row(connection, run)
    connection.execute(
        """UPDATE reattach_runs SET again_to = ?, epoch = ?, last_sequence = ?, cursor_id = ?, cursor = ?, updated_at = ?
        WHERE run = ?""",
        (max(stood.again_to, stood.committed.position), mark.epoch, mark.sequence, mark.id, mark.cursor, now, run),
    )
    at = mark.position
    inside = connection.execute(
        "SELECT first, batch, events, committed_at FROM reattach_batches WHERE run = ? AND first <= ? AND batch > ?",
        (run, at, at),
    ).fetchone()
    connection.execute("DELETE FROM reattach_batches WHERE run = ? AND batch > ?", (run, at))
    connection.execute("DELETE FROM reattach_gaps WHERE run = ? AND at > ?", (run, at))
    if inside is not None:
        first, _, events, committed_at = inside
        kept = json.dumps(json.loads(events)[: at - first + 1], separators=(",", ":"))
        connection.execute(
            "INSERT INTO reattach_batches (run, batch, first, events, committed_at) VALUES (?, ?, ?, ?, ?)",
            (run, at, first, kept, committed_at),
        )
    return row(connection, run)
