"""What a row of a run becomes, as the line that says so. Pure: looks at the state, changes nothing."""

from __future__ import annotations

from reattach.stores.base import Intent, RunRow
from reattach.stores.check import joined
from reattach.stores.jsonl.journal import Saying
from reattach.stores.jsonl.tables import Tables, members


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
        StoreFailed: See `check.joined`.
    """
    mine = tables.rows[run]
    twin = tables.find(mine.server, mine.profile, None, run_id)
    kept, changes = joined(mine, twin, run_id, session_id, status)
    told = {"run": kept, "at": now, **members(changes)}
    return Saying("created", {**told, "was": run} if kept != run else told)


def adopt(
    tables: Tables, known: RunRow | None, server: str, profile: str, run_id: str, continues: str | None, now: str
) -> Saying:
    """Return the line of a run that is attached by id, or that says what a known one continues."""
    if known is not None:
        return Saying("noted", {"run": known.run, "at": now, "continues": continues})
    told = {"run": tables.last_run + 1, "at": now, "server": server, "profile": profile, "run_id": run_id}
    return Saying("adopted", {**told, "continues": continues} if continues is not None else told)
