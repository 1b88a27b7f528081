"""A lease as SQLite's tables tell it: its place in FILE-marks is its row's number."""

from __future__ import annotations

import sqlite3

from reattach.stores.base import Lease
from reattach.stores.noted import LeaseRow, must_own
from reattach.stores.tables import leases

NUMBER = "l.rowid"
"""SQL of a lease's place in FILE-marks."""


def lease_row(connection: sqlite3.Connection, run: int, consumer: str) -> LeaseRow | None:
    """Return the lease as it stands, None if it was never taken."""
    return leases.lease_row(connection, run, consumer, number=NUMBER)


def own(connection: sqlite3.Connection, lease: Lease) -> LeaseRow:
    """Return the lease's row, if it is the current one; raise LeaseGone if not."""
    return must_own(lease_row(connection, lease.run, lease.consumer), lease)
