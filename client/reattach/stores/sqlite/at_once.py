"""A commit in one statement: the events that a burst brings, their cursors and the mark that a reader noted.

Python's driver gives the interpreter's lock away at every step of a statement, and to get it back from a loop that is busy takes
up to 5 ms: as six statements a commit lasted 60 ms of a burst, almost all of it waiting. So the statements are the body of a
trigger, on a view that holds nothing; both are the connection's own, in no file, and what the statements say is that of
`stores.tables`. Where it is not the usual group, or may not be kept, nothing was written and the long way finds out why.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from reattach.stores.base import Lease
from reattach.stores.noted import Carried, Noted
from reattach.stores.tables.batches import INSERT, STANDING, Prepared, moving
from reattach.stores.tables.leases import raising

MOST = 48
"""Writes in one statement; a burst's commit has a dozen, and SQLite limits how many values a statement may have."""
_REFUSED = "not at once"
_COLUMNS = (
    *("run", "token", "prev", "position", "events", "epoch", "sequence", "id", "cursor", "status", "outcome", "now"),
    *("mark_run", "mark_consumer", "mark_token", "mark"),
)
_MARK = ("new.position", "new.epoch", "new.sequence", "new.id", "new.cursor")
_SETTLED = "CASE WHEN new.outcome IS NOT NULL THEN new.now END"

_MADE = (
    f"CREATE TEMP VIEW reattach_commit AS SELECT {', '.join(f'NULL AS {name}' for name in _COLUMNS)} WHERE 0",
    f"""CREATE TEMP TRIGGER reattach_commit_at_once INSTEAD OF INSERT ON reattach_commit BEGIN
        SELECT raise(ABORT, '{_REFUSED}') WHERE (new.run, new.prev, new.token) IS NOT ({STANDING} WHERE run = new.run);
        {INSERT} SELECT new.run, new.position, new.prev + 1, new.events, new.now;
        {moving("new.run", _MARK, "0", "new.status", "new.outcome", _SETTLED, "new.now")};
        {raising("new.mark_run", "new.mark_consumer", "new.mark_token", "new.mark", "new.now")};
    END""",
)
_ROW = f"({', '.join('?' * len(_COLUMNS))})"
_NO_MARK = (None, None, None, None)


def prepare(connection: sqlite3.Connection) -> None:
    """Make the view and its trigger for this connection."""
    for statement in _MADE:
        connection.execute(statement)


def commit(connection: sqlite3.Connection, told: Sequence[Prepared], noted: Noted, now: str) -> Carried | None:
    """Commit a group, durably, with what was noted; None: not this way, and nothing was written.

    Args:
        connection: Outside of a transaction.
        told: The writes, in order.
        noted: The marks; of more than one none is carried here.
        now: The wall clock's time.
    """
    if not 0 < len(told) <= MOST or any(not each.write.batch or each.write.bare for each in told):
        return None
    marks: list[tuple[Lease, int]] = []
    carried = noted.carry(lambda lease, position: marks.append((lease, position)))
    if len(marks) > 1:
        return None
    values: list[str | int | None] = []
    for each in told:
        write = each.write
        values += (write.run, write.token, write.prev.position, write.mark.position, each.events, *write.mark[1:])
        values += (write.status, each.outcome, now, *_NO_MARK)
    if marks:
        ((lease, position),) = marks
        values[-len(_NO_MARK) :] = (*lease, position)
    try:
        connection.execute(f"INSERT INTO reattach_commit VALUES {', '.join([_ROW] * len(told))}", values)
    except sqlite3.IntegrityError as error:
        if str(error) != _REFUSED:
            raise
        return None
    return carried
