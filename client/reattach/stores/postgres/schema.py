r"""The journal's tables in PostgreSQL, made and migrated under an advisory lock. Names and columns are the surface's (section 5).

They live in the first schema of the session's search path, beside the user's own tables. Times are texts as in the other journals,
so that the statements are the same; of the server's clock. Events are text and not jsonb, which would refuse `\u0000` and half of
a surrogate pair, and would change what the vendor sent.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

from reattach.stores.postgres.line import KEEP_DAYS
from reattach.stores.postgres.session import Session
from reattach.stores.tables.version import checked

_LOCK = 0x7265_6174_7461_6368  # "reattach"

_FIRST = (
    "CREATE TABLE reattach_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITH (fillfactor = 50)",
    # An identity is never given twice, so that a lease of a forgotten intent cannot fit a later run.
    """
    CREATE TABLE reattach_runs (
        run BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        server TEXT NOT NULL, profile TEXT NOT NULL,
        run_id TEXT, key TEXT, session_id TEXT, continues TEXT,
        status TEXT NOT NULL,
        incarnation BIGINT NOT NULL DEFAULT 1,
        epoch TEXT, cursor TEXT, cursor_id TEXT, last_sequence BIGINT NOT NULL DEFAULT 0,
        again_to BIGINT,
        needs TEXT NOT NULL DEFAULT '',
        request TEXT, request_sha256 TEXT, sent_at TEXT,
        outcome TEXT, handed_out INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL, settled_at TEXT, updated_at TEXT NOT NULL,
        UNIQUE (server, profile, key), UNIQUE (server, profile, run_id)
    ) WITH (fillfactor = 70)""",
    """
    CREATE TABLE reattach_batches (
        run BIGINT NOT NULL, batch BIGINT NOT NULL, first BIGINT NOT NULL,
        events TEXT NOT NULL, committed_at TEXT NOT NULL,
        PRIMARY KEY (run, batch)
    )""",
    """
    CREATE TABLE reattach_marks (
        run BIGINT NOT NULL, consumer TEXT NOT NULL, applied BIGINT NOT NULL, updated_at TEXT NOT NULL,
        PRIMARY KEY (run, consumer)
    ) WITH (fillfactor = 70)""",
    """
    CREATE TABLE reattach_gaps (
        run BIGINT NOT NULL, at BIGINT NOT NULL,
        reason TEXT NOT NULL, after TEXT, until TEXT, missing BIGINT, snapshot TEXT,
        noticed_at TEXT NOT NULL,
        PRIMARY KEY (run, at)
    )""",
    """
    CREATE TABLE reattach_leases (
        run BIGINT NOT NULL, consumer TEXT NOT NULL,
        holder TEXT, since TEXT NOT NULL, token BIGINT NOT NULL, expires_at TEXT,
        PRIMARY KEY (run, consumer)
    ) WITH (fillfactor = 70)""",
    # Events only: a gap is no event. PostgreSQL's functions refuse what its text cannot hold, NUL and half a surrogate pair, so
    # here, and only here, U+FFFD stands for them.
    r"""
    CREATE VIEW reattach_events (run_id, key, position, cursor, id, type, text, data, committed_at) AS
    SELECT r.run_id, r.key, b.first + e.number - 1,
        e.value ->> 'cursor', e.value ->> 'id', e.value ->> 'type', coalesce(e.value ->> 'text', ''),
        CASE WHEN e.value -> 'event' IS NULL THEN e.value -> 'data' ELSE e.value -> 'event' -> 'data' END,
        b.committed_at
    FROM reattach_batches AS b JOIN reattach_runs AS r ON r.run = b.run,
    LATERAL json_array_elements(CASE WHEN b.events !~* '\\u(0000|d[89a-f])' THEN b.events::json ELSE
        regexp_replace(regexp_replace(regexp_replace(b.events, '\\u0000', '\\ufffd', 'g'),
            '\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f][0-9a-f]{2})', '\\ufffd', 'gi'),
            '(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}', '\\ufffd', 'gi')::json END)
        WITH ORDINALITY AS e (value, number)""",
)

_STEPS = (_FIRST,)
"""Step n makes version n + 1 of version n; version 0 is a database without our tables. All missing steps are one transaction."""

VERSION = len(_STEPS)


def migrate(session: Session) -> None:
    """Bring the tables to `VERSION` in the open transaction; who opens meanwhile waits.

    Raises:
        StoreNewer: They are of a newer version, and are as they were.
        StoreDamaged: Their version is no number.
    """
    session.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
    version = 0
    if session.execute("SELECT to_regclass('reattach_meta')").fetchone() != (None,):
        found = session.execute("SELECT value FROM reattach_meta WHERE name = 'schema'").fetchone()
        version = checked(found[0] if found is not None else None, VERSION)
    for statements in _STEPS[version:]:
        for statement in statements:
            session.connection.execute(statement.encode())  # as it is: a question mark may be a pattern's
    keep = "INSERT INTO reattach_meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO"
    if version < VERSION:
        session.execute(f"{keep} UPDATE SET value = excluded.value", ("schema", str(VERSION)))
    session.execute(f"{keep} NOTHING", ("journal", secrets.token_hex(16)))
    old = datetime.now(UTC) - timedelta(days=KEEP_DAYS)
    session.execute("DELETE FROM reattach_meta WHERE name > 'receipt:' AND name < ?", (f"receipt:{old:%Y-%m-%d}",))
