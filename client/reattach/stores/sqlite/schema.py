"""The journal's tables and how an older file gets them. Names and columns are the surface's (section 5); a test compares.

Positions are not a column of `reattach_runs`: a batch is numbered by the position of its last event, so the committed position
is the highest batch or gap, found in the index and never able to disagree with what is there.
"""

from __future__ import annotations

import secrets
import sqlite3

from reattach.stores.tables.version import checked

_FIRST = (
    "CREATE TABLE reattach_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    # AUTOINCREMENT: a number is never given twice, so that a lease of a forgotten intent cannot fit a later run.
    """
    CREATE TABLE reattach_runs (
        run INTEGER PRIMARY KEY AUTOINCREMENT,
        server TEXT NOT NULL, profile TEXT NOT NULL,
        run_id TEXT, key TEXT, session_id TEXT, continues TEXT,
        status TEXT NOT NULL,
        incarnation INTEGER NOT NULL DEFAULT 1,
        epoch TEXT, cursor TEXT, cursor_id TEXT, last_sequence INTEGER NOT NULL DEFAULT 0,
        head INTEGER, again_to INTEGER,
        needs TEXT NOT NULL DEFAULT '',
        request TEXT, request_sha256 TEXT, sent_at TEXT,
        outcome TEXT, handed_out INTEGER NOT NULL DEFAULT 0,
        resume_with TEXT,
        created_at TEXT NOT NULL, settled_at TEXT, updated_at TEXT NOT NULL,
        UNIQUE (server, profile, key), UNIQUE (server, profile, run_id)
    )""",
    """
    CREATE TABLE reattach_batches (
        run INTEGER NOT NULL,
        batch INTEGER NOT NULL,  -- the position of its last event
        first INTEGER NOT NULL,  -- the position of its first event
        events TEXT NOT NULL,    -- a JSON array
        committed_at TEXT NOT NULL,
        PRIMARY KEY (run, batch)
    )""",
    """
    CREATE TABLE reattach_marks (
        run INTEGER NOT NULL, consumer TEXT NOT NULL,
        applied INTEGER NOT NULL,  -- a position
        cursor TEXT, cursor_id TEXT,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (run, consumer)
    )""",
    """
    CREATE TABLE reattach_gaps (
        run INTEGER NOT NULL,
        at INTEGER NOT NULL,  -- the position that it takes
        reason TEXT NOT NULL, after TEXT, until TEXT, missing INTEGER, snapshot TEXT,
        noticed_at TEXT NOT NULL,
        PRIMARY KEY (run, at)
    )""",
    """
    CREATE TABLE reattach_seen (
        run INTEGER NOT NULL, epoch TEXT NOT NULL, dedupe TEXT NOT NULL, sha256 BLOB NOT NULL,
        PRIMARY KEY (run, epoch, dedupe)
    )""",
    # The rowid is the number of the lease's slots in FILE-marks.
    """
    CREATE TABLE reattach_leases (
        run INTEGER NOT NULL, consumer TEXT NOT NULL,
        holder TEXT, since TEXT NOT NULL, token INTEGER NOT NULL, expires_at TEXT,
        PRIMARY KEY (run, consumer)
    )""",
    # Events only: a gap is no event. `data` is a member of the vendor's event, or the whole of it, see stores/entry.py.
    """
    CREATE VIEW reattach_events (run_id, key, position, cursor, id, type, text, data, committed_at) AS
    SELECT r.run_id, r.key, b.first + e.key,
        json_extract(e.value, '$.cursor'), json_extract(e.value, '$.id'), json_extract(e.value, '$.type'),
        coalesce(json_extract(e.value, '$.text'), ''),
        CASE WHEN json_type(e.value, '$.event') IS NULL
             THEN json_extract(e.value, '$.data') ELSE json_extract(e.value, '$.event.data') END,
        b.committed_at
    FROM reattach_batches AS b JOIN reattach_runs AS r ON r.run = b.run, json_each(b.events) AS e""",
)

# What no code ever wrote. Without the place of a noted mark in reattach_marks, since the batch that holds it tells its cursor.
_SECOND = (
    "DROP TABLE reattach_seen",
    "ALTER TABLE reattach_runs DROP COLUMN head",
    "ALTER TABLE reattach_runs DROP COLUMN resume_with",
    "ALTER TABLE reattach_marks DROP COLUMN cursor",
    "ALTER TABLE reattach_marks DROP COLUMN cursor_id",
)

_STEPS = (_FIRST, _SECOND)
"""Step n makes version n + 1 of version n; version 0 is a file without our tables. All missing steps are one transaction."""

VERSION = len(_STEPS)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the schema version, 0 if our tables are not there.

    Raises:
        StoreNewer: It is above ours.
        StoreDamaged: It is no number.
    """
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'reattach_meta'").fetchone():
        return 0
    found = connection.execute("SELECT value FROM reattach_meta WHERE name = 'schema'").fetchone()
    return checked(found[0] if found is not None else None, VERSION)


def migrate(connection: sqlite3.Connection) -> bytes:
    """Bring the tables to `VERSION` in the open transaction and return the journal's id, 16 bytes."""
    version = version_of(connection)
    for statements in _STEPS[version:]:
        for statement in statements:
            connection.execute(statement)
    if version < VERSION:
        connection.execute("INSERT OR REPLACE INTO reattach_meta VALUES ('schema', ?)", (str(VERSION),))
    connection.execute("INSERT OR IGNORE INTO reattach_meta VALUES ('journal', ?)", (secrets.token_hex(16),))
    (journal,) = connection.execute("SELECT value FROM reattach_meta WHERE name = 'journal'").fetchone()
    return bytes.fromhex(journal)
