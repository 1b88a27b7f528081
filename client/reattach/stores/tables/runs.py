"""The rows of runs: SQL and nothing else. Each function works on the connection, and in the transaction, that it is given."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from reattach.core.messages import Mark
from reattach.stores.base import Intent, RunRow
from reattach.stores.check import forgettable, joined, plain
from reattach.stores.tables.connection import Connection
from reattach.stores.times import moment, text_of

_BATCH = "(SELECT max(batch) FROM reattach_batches WHERE run = r.run)"
POSITION = f"""coalesce(
    (SELECT max(at) FROM reattach_gaps WHERE run = r.run AND at > coalesce({_BATCH}, 0)), {_BATCH}, 0)"""
"""The committed position of the run of row `r`: of its last batch, or of the gap behind that."""

_SELECT = f"""SELECT run, server, profile, run_id, key, session_id, continues, status, incarnation, {POSITION}, epoch,
    last_sequence, cursor_id, cursor, coalesce(again_to, 0), needs, request, request_sha256, sent_at, outcome, handed_out,
    created_at, settled_at, updated_at FROM reattach_runs AS r"""


def intend(connection: Connection, intent: Intent, now: str) -> tuple[RunRow, bool]:
    """Return the row of an intent, and whether it is new."""
    known = _intended(connection, intent)
    if known is not None:
        return known, False
    connection.execute(
        """INSERT INTO reattach_runs
        (server, profile, key, continues, status, request, request_sha256, sent_at, created_at, updated_at)
        VALUES (?, ?, ?, ?, 'unknown', ?, ?, ?, ?, ?)""",
        (
            intent.server,
            intent.profile,
            intent.key,
            intent.continues,
            plain(intent.request),
            intent.request_sha256,
            now,
            now,
            now,
        ),
    )
    return cast(RunRow, _intended(connection, intent)), True


def _intended(connection: Connection, intent: Intent) -> RunRow | None:
    if intent.key is not None:
        return find(connection, intent.server, intent.profile, key=intent.key)
    rows = continuing(connection, intent.server, intent.profile, intent.continues or "")
    return next((each for each in rows if each.request_sha256 == intent.request_sha256), None)


def created(connection: Connection, run: int, run_id: str, session_id: str | None, status: str, now: str) -> RunRow:
    """Give a row its run id; if another row has it already (it was attached by id meanwhile), the two become that one.

    Raises:
        StoreFailed: See `check.joined`.
    """
    mine = row(connection, run)
    twin = find(connection, mine.server, mine.profile, run_id=run_id)
    kept, changes = joined(mine, twin, run_id, session_id, status)
    if kept != run:
        _remove(connection, run)
    columns = ", ".join(f"{name} = ?" for name in changes)
    values = [text_of(value) if isinstance(value, datetime) else value for value in changes.values()]
    connection.execute(f"UPDATE reattach_runs SET {columns}, updated_at = ? WHERE run = ?", (*values, now, kept))
    return row(connection, kept)


def forget(connection: Connection, run: int) -> None:
    """Remove an intent, or a row that is only a name; any other stays."""
    try:
        known = row(connection, run)
    except KeyError:
        return
    if forgettable(known):
        _remove(connection, run)


def adopt(connection: Connection, server: str, profile: str, run_id: str, continues: str | None, now: str) -> RunRow:
    """Return the row of a run id, made if it is new; what it continues is noted where that is not known yet."""
    known = find(connection, server, profile, run_id=run_id)
    if known is None:
        connection.execute(
            """INSERT INTO reattach_runs (server, profile, run_id, continues, status, created_at, updated_at)
            VALUES (?, ?, ?, ?, 'unknown', ?, ?)""",
            (server, profile, run_id, continues, now, now),
        )
        return cast(RunRow, find(connection, server, profile, run_id=run_id))
    if continues is None or known.continues is not None:
        return known
    change(connection, known.run, "continues", continues, now)
    return row(connection, known.run)


def row(connection: Connection, run: int) -> RunRow:
    """Return the row of a number; KeyError if there is none."""
    found = connection.execute(f"{_SELECT} WHERE run = ?", (run,)).fetchone()
    if found is None:
        raise KeyError(run)
    return _row(found)


def find(
    connection: Connection, server: str, profile: str, *, key: str | None = None, run_id: str | None = None
) -> RunRow | None:
    """Return the row of a key or a run id."""
    if (key is None) == (run_id is None):
        raise ValueError("find takes a key or a run id")
    column = "key" if key is not None else "run_id"
    found = connection.execute(
        f"{_SELECT} WHERE server = ? AND profile = ? AND {column} = ?",
        (server, profile, key if key is not None else run_id),
    ).fetchone()
    return _row(found) if found is not None else None


def continuing(connection: Connection, server: str, profile: str, run_id: str) -> list[RunRow]:
    """Return the rows that continue a run, newest first."""
    found = connection.execute(
        f"{_SELECT} WHERE server = ? AND profile = ? AND continues = ? ORDER BY run DESC", (server, profile, run_id)
    )
    return [_row(each) for each in found]


def rows(connection: Connection, server: str | None, profile: str | None) -> list[RunRow]:
    """Return all rows, newest first."""
    found = connection.execute(
        f"{_SELECT} WHERE server = coalesce(?, server) AND profile = coalesce(?, profile) ORDER BY run DESC",
        (server, profile),
    )
    return [_row(each) for each in found]


def change(connection: Connection, run: int, column: str, value: Any, now: str) -> None:
    """Set one column of a row."""
    connection.execute(f"UPDATE reattach_runs SET {column} = ?, updated_at = ? WHERE run = ?", (value, now, run))


def _remove(connection: Connection, run: int) -> None:
    for table in ("runs", "batches", "marks", "gaps", "leases"):
        connection.execute(f"DELETE FROM reattach_{table} WHERE run = ?", (run,))


def _row(found: tuple[Any, ...]) -> RunRow:
    (
        run, server, profile, run_id, key, session_id, continues, status, incarnation, position, epoch,
        last_sequence, cursor_id, cursor, again_to, needs, request, request_sha256, sent_at, outcome, handed_out, created_at,
        settled_at, updated_at,
    ) = found  # fmt: skip  # the order of _SELECT, line by line
    return RunRow(
        run=run,
        server=server,
        profile=profile,
        run_id=run_id,
        key=key,
        session_id=session_id,
        continues=continues,
        status=status,
        incarnation=incarnation,
        committed=Mark(position, epoch, last_sequence, cursor_id, cursor),
        again_to=again_to,
        needs=needs,
        request=request,
        request_sha256=request_sha256,
        sent_at=moment(sent_at),
        outcome=outcome,
        handed_out=bool(handed_out),
        created_at=cast(datetime, moment(created_at)),
        settled_at=moment(settled_at),
        updated_at=cast(datetime, moment(updated_at)),
    )
