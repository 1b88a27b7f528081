"""The tables of a SQLite log, and rows as values: what of SQL can be said without a log's life.

`events.place` is the run's number and the sequence in one integer, so that a replay is one range of the primary key.
All functions take a connection and leave transactions to their caller.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from reattach_mockserver.event import SETTLED, Entry, Stored
from reattach_mockserver.logs.base import Counts, Effect, LogError, OperationRecord, RunRecord

SCHEMA = 3

PLACES = 1 << 32  # sequences of one run; its events are at number * PLACES + sequence
COLUMNS = tuple(field.name for field in fields(RunRecord))
run_values = attrgetter(*COLUMNS)  # a record as the values of its columns
RUN = f"SELECT {', '.join(COLUMNS)} FROM runs"
SETTLED_WORDS = ", ".join(f"'{status}'" for status in sorted(SETTLED))
INSERT_RUN = f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
UPDATE_RUN = f"UPDATE runs SET {', '.join(f'{name} = ?' for name in COLUMNS[1:])} WHERE id = ?"

ACTIVE = f"SELECT count(*) FROM runs WHERE status NOT IN ({SETTLED_WORDS}) AND principal = ?"
EVENTS = "SELECT place, id, type, settles, body FROM events WHERE place > ? AND place < ? ORDER BY place LIMIT ?"

TABLES = f"""
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, number INTEGER UNIQUE, principal TEXT, key TEXT, digest TEXT, session_id TEXT, script TEXT,
    created_at TEXT, metadata TEXT, token TEXT, incarnation INTEGER, status TEXT, first_sequence INTEGER,
    last_sequence INTEGER, last_id TEXT, last_time TEXT, last_at INTEGER, ended_at TEXT, outcome TEXT, release TEXT,
    continues TEXT, continued_by TEXT, cancel_reason TEXT, writer INTEGER, resolution TEXT, resolved_at INTEGER,
    trim_to INTEGER, pins TEXT, pause TEXT, answers TEXT, input TEXT, UNIQUE (principal, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS other_keys (
    principal TEXT, key TEXT, digest TEXT, run_id TEXT, PRIMARY KEY (principal, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS runs_of_session ON runs (principal, session_id, number);
CREATE INDEX IF NOT EXISTS runs_unfinished ON runs (principal) WHERE status NOT IN ({SETTLED_WORDS});
CREATE TABLE IF NOT EXISTS events (
    place INTEGER PRIMARY KEY, id TEXT UNIQUE, step TEXT, type TEXT, settles INTEGER, at INTEGER, body BLOB
);
CREATE TABLE IF NOT EXISTS sessions (
    principal TEXT, id TEXT, created_at TEXT, last_run_id TEXT, PRIMARY KEY (principal, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS marks (run_id TEXT, step TEXT, PRIMARY KEY (run_id, step)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS effects (
    run_id TEXT, operation_id TEXT, tool TEXT, reversible INTEGER, attempts INTEGER, result TEXT,
    UNIQUE (run_id, operation_id)
);
CREATE TABLE IF NOT EXISTS claims (
    run_id TEXT, operation_id TEXT, number INTEGER, PRIMARY KEY (run_id, operation_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS operations (
    principal TEXT, run_id TEXT, id TEXT, tool TEXT, status TEXT, reversible INTEGER, external INTEGER, waits INTEGER,
    result TEXT, UNIQUE (principal, id, run_id)
);
CREATE TABLE IF NOT EXISTS revoked (token TEXT PRIMARY KEY) WITHOUT ROWID;
"""

OLDER = {
    1: """
ALTER TABLE runs ADD COLUMN pause TEXT;
ALTER TABLE runs ADD COLUMN answers TEXT;
ALTER TABLE effects ADD COLUMN result TEXT DEFAULT 'null';
ALTER TABLE runs ADD COLUMN input TEXT;
""",
    2: "ALTER TABLE runs ADD COLUMN input TEXT;",
}
FILL = {
    1: """
INSERT INTO operations SELECT runs.principal, runs.id, operation_id, tool, 'committed', reversible, 0, 0, 'null'
    FROM effects JOIN runs ON runs.id = effects.run_id;
"""
}

OPERATION = "SELECT run_id, id, tool, status, reversible, external, waits, result FROM operations"
TELL = """
INSERT INTO operations VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)
    ON CONFLICT (principal, id, run_id) DO UPDATE SET status = excluded.status WHERE status <> 'committed'
"""
CLAIM = """
INSERT INTO claims VALUES (?, ?, 1) ON CONFLICT (run_id, operation_id) DO UPDATE SET number = number + 1
"""
COMMIT = """
INSERT INTO operations VALUES (?, ?, ?, ?, 'committed', ?, 0, 0, ?) ON CONFLICT (principal, id, run_id)
    DO UPDATE SET status = 'committed', reversible = excluded.reversible, result = excluded.result, waits = 0
"""


def counts_of(connection: sqlite3.Connection) -> Counts:
    """Count what a log's file holds; for whoever has a connection to one."""
    return Counts(
        runs=number_of(connection, "SELECT count(*) FROM runs"),
        events=number_of(connection, "SELECT count(*) FROM events"),
        effects=number_of(connection, "SELECT count(*) FROM effects"),
        effect_attempts=number_of(connection, "SELECT coalesce(sum(attempts), 0) FROM effects"),
    )


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables, or refuse a file that is newer than this code."""
    version = number_of(connection, "PRAGMA user_version")
    if version > SCHEMA:
        raise LogError(f"{path} was written by a newer reattach (schema {version}, this one knows {SCHEMA})")
    # One transaction: a process that dies in it leaves the file as it was.
    connection.executescript(
        f"BEGIN IMMEDIATE; {OLDER.get(version, '')} {TABLES} {FILL.get(version, '')}"
        f" PRAGMA user_version = {SCHEMA}; COMMIT;"
    )


def execute(connection: sqlite3.Connection, sql: str, *values: str) -> None:
    """Run one statement."""
    connection.execute(sql, values)


def number_of(connection: sqlite3.Connection, sql: str, values: Sequence[Any] = ()) -> int:
    """Return the one number that is asked for; LookupError if there is no row."""
    row = connection.execute(sql, values).fetchone()
    if row is None:
        raise LookupError(values)
    number: int = row[0]
    return number


def one_run(connection: sqlite3.Connection, sql: str, values: Sequence[Any]) -> RunRecord | None:
    """Return the first run that is found."""
    row = connection.execute(sql, values).fetchone()
    return None if row is None else RunRecord(*row)


def run_by_key(connection: sqlite3.Connection, principal: str, key: str) -> RunRecord | None:
    """Return the run of a key, with that key's digest."""
    run = one_run(connection, f"{RUN} WHERE principal = ? AND key = ?", (principal, key))
    if run is not None:
        return run
    row = connection.execute(
        "SELECT run_id, digest FROM other_keys WHERE principal = ? AND key = ?", (principal, key)
    ).fetchone()
    return None if row is None else replace(run_of(connection, row[0]), key=key, digest=row[1])


def run_of(connection: sqlite3.Connection, run_id: str) -> RunRecord:
    """Return the run; LookupError if there is none."""
    run = one_run(connection, f"{RUN} WHERE id = ?", (run_id,))
    if run is None:
        raise LookupError(run_id)
    return run


def update_run(connection: sqlite3.Connection, run: RunRecord) -> None:
    """Write a run as it is now."""
    first, *rest = run_values(run)
    connection.execute(UPDATE_RUN, (*rest, first))


def known_events(connection: sqlite3.Connection, run: RunRecord, entries: Sequence[Entry]) -> dict[str, Stored]:
    """Return the stored form of those entries whose ids are there already."""
    found: dict[str, Stored] = {}
    for entry in entries:
        row = connection.execute(
            "SELECT place, id, type, settles, body FROM events WHERE id = ?", (entry.id,)
        ).fetchone()
        if row is not None:
            found[entry.id] = Stored(row[0] - run.number * PLACES, row[1], row[2], bool(row[3]), row[4])
    return found


def insert_events(connection: sqlite3.Connection, run: RunRecord, new: Sequence[tuple[Entry, Stored]]) -> None:
    """Write new events of a run."""
    low = run.number * PLACES
    connection.executemany(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (low + event.sequence, event.id, entry.step, event.type, event.settles, entry.at, event.body)
            for entry, event in new
        ],
    )
    for entry, _ in new:
        told = entry.operation
        if told is not None:
            row = (told.id, told.tool, told.status, told.reversible, told.external, told.waits)
            connection.execute(TELL, (run.principal, run.id, *row))


def events_of(connection: sqlite3.Connection, run: RunRecord, after: int, limit: int) -> list[Stored]:
    """Return a range of a run's events."""
    low = run.number * PLACES
    rows = connection.execute(EVENTS, (low + after, low + PLACES, limit))
    return [Stored(place - low, id_, kind, bool(settles), body) for place, id_, kind, settles, body in rows]


def time_of(event: Stored) -> str:
    """Return the time that an event carries."""
    time: str = json.loads(event.body)["time"]
    return time


def effects_of(connection: sqlite3.Connection, where: str, values: Sequence[str]) -> list[Effect]:
    """Return side effects, in the order in which they were done."""
    rows = connection.execute(
        f"SELECT run_id, operation_id, tool, reversible, attempts, result FROM effects WHERE {where} ORDER BY rowid",
        values,
    )
    return [
        Effect(run_id, operation_id, tool, bool(reversible), attempts, result)
        for run_id, operation_id, tool, reversible, attempts, result in rows
    ]


def claim_of(connection: sqlite3.Connection, run_id: str, operation_id: str) -> int:
    """Return the number of the operation's last claim, 0 if there never was one."""
    sql = "SELECT coalesce(max(number), 0) FROM claims WHERE run_id = ? AND operation_id = ?"
    return number_of(connection, sql, (run_id, operation_id))


def operation_of(connection: sqlite3.Connection, principal: str, operation_id: str) -> OperationRecord | None:
    """Return what the newest run that used the id knows of an operation."""
    row = connection.execute(
        f"{OPERATION} WHERE principal = ? AND id = ? ORDER BY rowid DESC LIMIT 1", (principal, operation_id)
    ).fetchone()
    if row is None:
        return None
    run_id, id_, tool, status, reversible, external, waits, result = row
    known = None if reversible is None else bool(reversible)
    return OperationRecord(run_id, id_, tool, status, known, bool(external), bool(waits), result)
