"""The stage of the PostgreSQL journal's tests: a journal's place on a real server, and an open journal in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from postgres_stage import Database, database
from reattach.stores.postgres import PostgresStore

__all__ = ["database"]


@pytest.fixture
def store(database: Database) -> Iterator[PostgresStore]:
    store = PostgresStore(database.url)
    store.open()
    yield store
    store.close()
