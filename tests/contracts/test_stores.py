"""The law of journals, on every journal that we have."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from postgres_stage import Database, database
from reattach.stores.base import Store
from reattach.stores.jsonl import JsonlStore
from reattach.stores.memory import MemoryStore
from reattach.stores.postgres import PostgresStore
from reattach.stores.sqlite import SqliteStore
from reattach.testing.failing import FailingStore
from reattach.testing.stores import StoreContract

__all__ = ["database"]


class TestMemory(StoreContract):
    @pytest.fixture
    def open_store(self) -> Callable[[], Store]:
        store = MemoryStore()
        return lambda: opened(store)


class TestJsonl(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path) -> Iterator[Callable[[], Store]]:
        """Each a store object of its own on the same file, as two clients in one process have."""
        stores: list[Store] = []

        def another() -> Store:
            stores.append(opened(JsonlStore(tmp_path / "runs.jsonl")))
            return stores[-1]

        yield another
        for store in stores:
            store.close()


class TestSqlite(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path) -> Iterator[Callable[[], Store]]:
        stores: list[Store] = []

        def another() -> Store:
            stores.append(opened(SqliteStore(tmp_path / "runs.db")))
            return stores[-1]

        yield another
        for store in stores:
            store.close()


class TestPostgres(StoreContract):
    private_notes = True
    placeholder = "%s"

    @pytest.fixture
    def open_store(self, database: Database) -> Iterator[Callable[[], Store]]:
        stores: list[Store] = []

        def another() -> Store:
            stores.append(opened(PostgresStore(database.url)))
            return stores[-1]

        yield another
        for store in stores:
            store.close()


class TestFailingThatDoesNotFail(StoreContract):
    @pytest.fixture
    def open_store(self) -> Callable[[], Store]:
        store = MemoryStore()
        return lambda: opened(FailingStore(store))


def opened(store: Store) -> Store:
    store.open()
    return store
