"""Leases and marks in their tables: SQL and nothing else, each in the transaction that it is given."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from reattach.stores.base import Busy, Holder, Lease
from reattach.stores.leases import Alive, holder_json, holder_of, taken
from reattach.stores.noted import LeaseRow, Noted
from reattach.stores.tables.connection import Connection
from reattach.stores.tables.runs import POSITION
from reattach.stores.times import moment, seconds_of, stamp


def busy(row: LeaseRow | None, now: float, alive: Alive) -> Busy | None:
    """Return who holds the lease at `now` (wall clock, s), None if nobody living does."""
    if row is None or row.holder is None:
        return None
    try:
        holder = holder_of(row.holder)
    except (ValueError, TypeError):
        return None  # not written by us: nobody whom one could ask
    if not taken(holder, seconds_of(row.expires_at), now, alive):
        return None
    return Busy(holder, cast(datetime, moment(row.since)))


def lease_row(connection: Connection, run: int, consumer: str, *, number: str = "0") -> LeaseRow | None:
    """Return the lease as it stands, None if it was never taken. `number` is SQL, of the lease's place in FILE-marks."""
    found = connection.execute(
        f"""SELECT {number}, l.token, l.holder, l.since, l.expires_at, r.incarnation, {POSITION},
            coalesce((SELECT applied FROM reattach_marks WHERE run = ?1 AND consumer = ?2), 0)
        FROM reattach_leases AS l JOIN reattach_runs AS r ON r.run = l.run WHERE l.run = ?1 AND l.consumer = ?2""",
        (run, consumer),
    ).fetchone()
    return LeaseRow(*found) if found is not None else None


def consumers(connection: Connection, run: int) -> list[str]:
    """Return who ever had a lease or a mark of a run, the writer aside."""
    found = connection.execute(
        """SELECT consumer FROM reattach_leases WHERE run = ?1 AND consumer <> ''
        UNION SELECT consumer FROM reattach_marks WHERE run = ?1 AND consumer <> '' ORDER BY consumer""",
        (run,),
    )
    return [consumer for (consumer,) in found]


def pass_on(
    connection: Connection,
    noted: Noted,
    row: LeaseRow | None,
    whose: tuple[int, str],
    holder: Holder,
    now: float,
    seconds: float,
    *,
    number: str = "0",
) -> Lease:
    """Give a lease that nobody living has to a holder, with a token one higher; what the last one noted counts for it.

    Args:
        connection: Inside a transaction.
        noted: The marks that were noted.
        row: The lease as it stands, None if it was never taken.
        whose: Run and consumer.
        holder: Who takes it.
        now: The wall clock, s.
        seconds: For how long.
        number: See `lease_row`.
    """
    run, consumer = whose
    applied = noted.applied(run, consumer, row)
    if row is not None:
        raise_mark(
            connection, Lease(run, consumer, row.token), applied, stamp(now)
        )  # under the new token it would not count
    connection.execute(
        """INSERT INTO reattach_leases (run, consumer, holder, since, token, expires_at) VALUES (?, ?, ?, ?, 1, ?)
        ON CONFLICT (run, consumer) DO UPDATE SET
            holder = excluded.holder, since = excluded.since, token = reattach_leases.token + 1,
            expires_at = excluded.expires_at""",
        (run, consumer, holder_json(holder), stamp(now), stamp(now + seconds)),
    )
    row = lease_row(connection, run, consumer, number=number)
    if row is None:
        raise KeyError(run)
    lease = Lease(run, consumer, row.token)
    noted.hold(lease, row, applied)
    return lease


def extend(connection: Connection, lease: Lease, expires_at: str) -> bool:
    """Move the end of a lease; False if it is lost."""
    done = connection.execute(
        "UPDATE reattach_leases SET expires_at = ? WHERE run = ? AND consumer = ? AND token = ? AND holder IS NOT NULL",
        (expires_at, *lease),
    )
    return done.rowcount == 1


def give_back(connection: Connection, lease: Lease) -> None:
    """Leave a lease to whoever comes; the row stays, so that its token is never given again."""
    connection.execute(
        "UPDATE reattach_leases SET holder = NULL, expires_at = NULL WHERE run = ? AND consumer = ? AND token = ?",
        lease,
    )


def raising(run: str, consumer: str, token: str, position: str, now: str) -> str:
    """Return the SQL that moves a mark up; each argument is SQL itself. See `raise_mark`."""
    return f"""INSERT INTO reattach_marks (run, consumer, applied, updated_at)
        SELECT l.run, l.consumer, {position}, {now} FROM reattach_leases AS l JOIN reattach_runs AS r ON r.run = l.run
        WHERE l.run = {run} AND l.consumer = {consumer} AND l.consumer <> '' AND l.token = {token}
            AND {position} <= {POSITION}
        ON CONFLICT (run, consumer) DO UPDATE SET applied = excluded.applied, updated_at = excluded.updated_at
            WHERE excluded.applied > reattach_marks.applied"""


_RAISE = raising("?1", "?2", "?3", "?4", "?5")


def raise_mark(connection: Connection, lease: Lease, position: int, now: str) -> None:
    """Move a mark up, if the lease is the current one and the position is committed; else change nothing.

    Who writes the events (consumer "") has no mark.
    """
    connection.execute(_RAISE, (*lease, position, now))
