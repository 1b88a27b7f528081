"""The journal in a SQLite file. Start with `store`; the statements are in `runs`, `batches` and `leases`."""

from reattach.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
