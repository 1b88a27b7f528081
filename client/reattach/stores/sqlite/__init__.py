"""The journal in a SQLite file. Start with `store`; most statements are in `tables`, which PostgreSQL speaks too."""

from reattach.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
