"""Events and gaps: one row a commit, read back by position. SQL and nothing else.

A write is looked at before anything of it is written, and then cannot fail alone: what still goes wrong (a full disk) is the
whole transaction's. So a group needs no savepoint a write, only the order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from reattach.stores.base import Entry, GapNote, Refusal, Write
from reattach.stores.check import batch_json, gap_entry, length_of, plain, refusal
from reattach.stores.tables import places
from reattach.stores.tables.connection import Connection
from reattach.stores.tables.runs import POSITION


class Prepared(NamedTuple):
    """A write with all that can be made of it before the journal's turn: its length and its texts."""

    write: Write
    length: int
    events: str
    outcome: str | None


def prepared(write: Write) -> Prepared:
    """Return a write ready to be kept. Raises ValueError if it makes no sense, see `check.length_of`."""
    outcome = plain(write.outcome) if write.outcome is not None else None
    return Prepared(write, length_of(write), batch_json(write) if write.batch else "", outcome)


def keep(connection: Connection, told: Prepared, now: str) -> Refusal | None:
    """Keep one write, or return why not; then nothing of it was written."""
    write = told.write
    found = connection.execute(f"{STANDING} WHERE run = ?", (write.run,)).fetchone()
    _, position, token = found if found is not None else (write.run, -1, None)
    refused = refusal(write, position, token)
    if refused is None:
        put(connection, told, now)
    return refused


STANDING = f"""SELECT run, {POSITION}, (SELECT token FROM reattach_leases WHERE run = r.run AND consumer = '')
    FROM reattach_runs AS r"""
"""Where the journal stands: run, committed position, and the token of who writes the run's events."""


INSERT = "INSERT INTO reattach_batches (run, batch, first, events, committed_at)"


def moving(
    run: str, mark: tuple[str, str, str, str, str], gaps: str, status: str, outcome: str, settled_at: str, now: str
) -> str:
    """Return the SQL that moves a run's row on; each argument is SQL itself, `mark` position, epoch, sequence, id and cursor."""
    position, epoch, sequence, id, cursor = mark
    return f"""UPDATE reattach_runs SET epoch = {epoch}, last_sequence = {sequence}, cursor_id = {id}, cursor = {cursor},
        incarnation = incarnation + {gaps}, status = coalesce({status}, status), outcome = coalesce({outcome}, outcome),
        settled_at = coalesce({settled_at}, settled_at), updated_at = {now},
        again_to = CASE WHEN {settled_at} IS NOT NULL AND again_to > {position} THEN {position} ELSE again_to END
        WHERE run = {run}"""


_MOVE = moving("?1", ("?11", "?2", "?3", "?4", "?5"), "?6", "?7", "?8", "?9", "?10")


def put(connection: Connection, told: Prepared, now: str) -> None:
    """Write what is not refused."""
    write = told.write
    if write.batch:
        connection.execute(
            f"{INSERT} VALUES (?, ?, ?, ?, ?)",
            (write.run, write.mark.position, write.prev.position + 1, told.events, now),
        )
        if write.bare:
            places.trim(connection, write.run)
    elif write.gap is not None:
        _keep_gap(connection, write.run, write.mark.position, write.gap, now)
    mark = write.mark
    connection.execute(
        _MOVE,
        (
            write.run,
            mark.epoch,
            mark.sequence,
            mark.id,
            mark.cursor,
            int(write.gap is not None),
            write.status,
            told.outcome,
            now if told.outcome is not None else None,
            now,
            mark.position,
        ),
    )


FULL_READ = 1 << 22
"""Characters of journal text that end a read, however few events they are: bounds the memory of whoever reads far behind."""


def read(connection: Connection, run: int, after: int, limit: int) -> list[Entry]:
    """Return entries from position `after` + 1 on, whole batches until there are `limit`, or enough to fill a read."""
    found: list[tuple[int, str]] = []
    last = after
    size = 0
    for first, batch, events in _batches(connection, run, after):
        found.append((first, events))
        last = batch
        size += len(events)
        if last - after >= limit or size >= FULL_READ:
            break
    else:
        last = 1 << 62  # all batches were read, so all gaps behind them belong to the answer too
    gaps = _gaps(connection, run, after, last)
    entries = [
        Entry(position, element)
        for first, events in found
        for position, element in enumerate(json.loads(events), first)
        if position > after
    ]
    return sorted(entries + gaps, key=_position) if gaps else entries


def newest(connection: Connection, run: int, limit: int) -> list[Entry]:
    """Return the last `limit` events behind the last gap."""
    (start,) = connection.execute("SELECT coalesce(max(at), 0) FROM reattach_gaps WHERE run = ?", (run,)).fetchone()
    (last,) = connection.execute(f"SELECT {POSITION} FROM reattach_runs AS r WHERE run = ?", (run,)).fetchone() or (0,)
    return read(connection, run, max(start, last - limit), limit)


def _batches(connection: Connection, run: int, after: int) -> Iterator[tuple[int, int, str]]:
    """Yield the batches behind a position, a page at a time: who stops early has not fetched them all."""
    page = FIRST_PAGE
    while True:
        found = connection.execute(
            "SELECT first, batch, events FROM reattach_batches WHERE run = ? AND batch > ? ORDER BY batch LIMIT ?",
            (run, after, page),
        ).fetchall()
        yield from found
        if len(found) < page:
            return
        after = found[-1][1]
        page = min(2 * page, FULL_PAGE)


FIRST_PAGE, FULL_PAGE = 64, 512
"""Batches that are fetched at a time: of one event each where it comes slowly, of a thousand in a burst."""


def _keep_gap(connection: Connection, run: int, at: int, gap: GapNote, now: str) -> None:
    snapshot = json.dumps(gap.state) if gap.state is not None else None
    connection.execute(
        """INSERT INTO reattach_gaps (run, at, reason, after, until, missing, snapshot, noticed_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
        (run, at, gap.reason, gap.after, gap.until, gap.missing, snapshot, now),
    )


def _gaps(connection: Connection, run: int, after: int, last: int) -> list[Entry]:
    found = connection.execute(
        "SELECT at, reason, after, until, missing, snapshot FROM reattach_gaps WHERE run = ? AND at > ? AND at <= ?",
        (run, after, last),
    ).fetchall()
    return [Entry(at, _gap(*told, snapshot=snapshot)) for at, *told, snapshot in found]


def _gap(
    reason: Any, after: str | None, until: str | None, missing: int | None, *, snapshot: str | None
) -> dict[str, Any]:
    return gap_entry(GapNote(reason, after, until, missing, json.loads(snapshot) if snapshot is not None else None))


def _position(entry: Entry) -> int:
    return entry.position
