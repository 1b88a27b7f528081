"""What a row of a run becomes, as the line that says so. Pure: looks at the state, changes nothing."""

from __future__ import annotations

from typing import Any

from reattach.stores.base import Intent, RunRow, StoreFailed
from reattach.stores.jsonl.journal import Saying
from reattach.stores.jsonl.tables import Tables
from reattach.stores.times import stamp


def intended(tables: Tables, intent: Intent) -> RunRow | None:
    """Return the row that an intent has already: by its key, or as a continuation by what it continues and its digest."""
    if intent.key is not None:
        return tables.find(intent.server, intent.profile, intent.key, None)
    for row in tables.newest_first(intent.server, intent.profile):
        if row.continues == intent.continues and row.request_sha256 == intent.request_sha256:
            return row
    return None


def intend(tables: Tables, intent: Intent, now: str) -> Saying:
    """Return the line of a new intent."""
    told = {"run": tables.last_run + 1, "at": now, **intent._asdict(), "sent_at": now}
    return Saying("intended", told)


def created(tables: Tables, run: int, run_id: str, session_id: str | None, status: str, now: str) -> Saying:
    """Return the line that gives a row its run id; if another row has it already, the two become that one.

    Raises:
        StoreFailed: The key has another run, or the run another key. Neither may be forgotten, so nothing is changed.
    """
    mine = tables.rows[run]
    if mine.run_id not in (None, run_id):
        raise StoreFailed(f"key {mine.key!r} already has run {mine.run_id!r}, it cannot also be {run_id!r}")
    told: dict[str, Any] = {"run": run, "at": now}
    row = mine
    twin = tables.find(mine.server, mine.profile, None, run_id)
    if twin is not None and twin.run != run:
        if twin.key is not None and mine.key is not None:
            raise StoreFailed(f"run {run_id!r} already has key {twin.key!r}, it cannot also have {mine.key!r}")
        told |= {
            "run": twin.run,
            "was": run,
            "key": mine.key or twin.key,
            "continues": twin.continues or mine.continues,
        }
        if twin.key is None:
            told |= {
                "request_sha256": mine.request_sha256,
                "sent_at": stamp(mine.sent_at.timestamp()) if mine.sent_at is not None else None,
            }
        row = twin
    told |= {"run_id": run_id, "request": None}
    if session_id is not None:
        told["session_id"] = session_id
    if row.outcome is None:  # a run whose end is known is not made unfinished by a create that was answered late
        told["status"] = status
    return Saying("created", told)


def adopt(
    tables: Tables, known: RunRow | None, server: str, profile: str, run_id: str, continues: str | None, now: str
) -> Saying:
    """Return the line of a run that is attached by id, or that says what a known one continues."""
    if known is not None:
        return Saying("noted", {"run": known.run, "at": now, "continues": continues})
    told = {"run": tables.last_run + 1, "at": now, "server": server, "profile": profile, "run_id": run_id}
    return Saying("adopted", {**told, "continues": continues} if continues is not None else told)
