"""Which rows are locked, and in which order, so that two processes never wait for each other: runs before leases, by number."""

from __future__ import annotations

from collections.abc import Iterable

from reattach.stores.noted import LeaseRow
from reattach.stores.postgres.session import Session
from reattach.stores.tables import leases as lease_table


def lock_runs(session: Session, numbers: Iterable[int]) -> None:
    """Lock the rows of runs."""
    session.execute(
        "SELECT 1 FROM reattach_runs WHERE run = ANY(?::bigint[]) ORDER BY run FOR UPDATE", (list(numbers),)
    )


def lock_leases(session: Session, whose: Iterable[tuple[int, str]]) -> None:
    """Lock the rows of leases, by run and consumer."""
    held = sorted(whose)
    session.execute(
        """SELECT 1 FROM reattach_leases WHERE (run, consumer) IN (SELECT * FROM unnest(?::bigint[], ?::text[]))
        ORDER BY run, consumer FOR UPDATE""",
        ([run for run, _ in held], [consumer for _, consumer in held]),
    )


def locked(session: Session, run: int, consumer: str) -> LeaseRow | None:
    """Return the lease as it stands, nobody being able to change it until the end of the transaction."""
    lock_leases(session, [(run, consumer)])
    return lease_table.lease_row(session, run, consumer)
