"""Journals: the seam (`base`), its law, and what keeps it. `open_store` makes one of what a user wrote."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reattach.stores.jsonl import JsonlStore
from reattach.stores.memory import MemoryStore
from reattach.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from reattach.stores.base import Store

__all__ = ["JsonlStore", "MemoryStore", "SqliteStore", "open_store"]


def open_store(journal: str | os.PathLike[str] | Store) -> Store:
    """Return the store of a journal's name, not opened yet; a store is returned as it is.

    Args:
        journal: ":memory:", the path of a JSONL file (`….jsonl`) or of a SQLite file, a PostgreSQL address, or a store.

    Raises:
        ValueError: This version has no store of that kind.
    """
    if isinstance(journal, bytes | int | None):
        raise ValueError(f'journal={journal!r}: give the path of a SQLite file, such as "runs.db"')
    if not isinstance(journal, str | os.PathLike):
        return journal
    name = os.fspath(journal)
    if not _possible(name):
        raise ValueError(f'journal={name!r} is no path: give one of a SQLite file, such as "runs.db"')
    if name == ":memory:":
        return MemoryStore()
    # Only the scheme is repeated: an address may hold a password.
    scheme, separator, _ = name.partition("://")
    if scheme in ("postgresql", "postgres") and separator:
        return _postgres(name)
    if separator:
        raise ValueError(
            f'a journal at {scheme}:// is not in this version: give the path of a SQLite file, such as "runs.db"'
        )
    if not name.strip():
        raise ValueError('a journal needs a name: give the path of a SQLite file, such as "runs.db"')
    return JsonlStore(journal) if name.endswith(".jsonl") else SqliteStore(journal)


def _postgres(url: str) -> Store:
    try:
        from reattach.stores.postgres import PostgresStore  # psycopg is an extra, and only who asks for it pays
    except ImportError as error:
        raise ValueError(
            f"a journal in PostgreSQL needs psycopg, which cannot be used here ({error}): pip install 'reattach[postgres]'"
        ) from error
    return PostgresStore(url)


def _possible(name: str) -> bool:
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False  # half of a character that this system's paths cannot hold
