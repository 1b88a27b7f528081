"""The stage of the SQLite journal's tests: one file, open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reattach.stores.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    store.open()
    yield store
    store.close()
