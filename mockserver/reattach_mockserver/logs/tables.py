"""The tables of a SQLite log, and rows as values: what of SQL can be said without a log's life.

`events.place` is the run's number and the sequence in one integer, so that a replay is one range of the primary key.
All functions take a connection and leave transactions to their caller.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any

from reattach_mockserver.event import SETTLED, Entry, Stored
from reattach_mockserver.logs.base import Counts, Effect, LogError, RunRecord

SCHEMA = 1

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
    trim_to INTEGER, pins TEXT, UNIQUE (principal, key)
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
    run_id TEXT, operation_id TEXT, tool TEXT, reversible INTEGER, attempts INTEGER, UNIQUE (run_id, operation_id)
);
CREATE TABLE IF NOT EXISTS revoked (token TEXT PRIMARY KEY) WITHOUT ROWID;
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
    connection.executescript(TABLES)
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


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
        f"SELECT run_id, operation_id, tool, reversible, attempts FROM effects WHERE {where} ORDER BY rowid", values
    )
    return [
        Effect(run_id, operation_id, tool, bool(reversible), attempts)
        for run_id, operation_id, tool, reversible, attempts in rows
    ]
