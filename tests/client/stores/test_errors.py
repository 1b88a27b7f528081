"""SQLite's errors in the seam's words, made by SQLite itself; the store stays usable."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest

from reattach.stores import open_store
from reattach.stores.base import StoreDamaged, StoreFailed, StoreLocked
from reattach.stores.sqlite import SqliteStore
from reattach.stores.sqlite.errors import translated
from reattach.testing.stores import begun, events, mark_at


def test_a_full_disk_keeps_nothing_of_the_group_and_heals(store):
    """All or none of a group; with room again the same commit goes through."""
    row, lease, _ = begun(store)
    other, other_lease, _ = begun(store, "run_2")
    (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count = {pages}")
    group = [events(other_lease, 1, 1), events(lease, 1, 2000)]
    with pytest.raises(StoreFailed, match=r"no space left on device \(SQLITE_FULL\)"):
        store.commit(group)
    assert store.read(row.run, 0, 10) == store.read(other.run, 0, 10) == []
    store._writer.execute("PRAGMA max_page_count = 1000000")
    assert store.commit(group) == [None, None]
    assert store.row(row.run).committed == mark_at(2000)


def test_a_journal_that_can_only_be_read_says_so(store):
    """And reading goes on."""
    row, lease, _ = begun(store)
    store._writer.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreFailed, match="cannot be written, only read"):
        store.commit([events(lease, 1, 1)])
    assert store.row(row.run).run_id == "run_1"


def test_a_store_that_is_not_open_says_so(tmp_path):
    store = SqliteStore(tmp_path / "runs.db")
    for call in (store.rows, lambda: store.commit([]), store.carry, store.changed):
        with pytest.raises(StoreFailed, match="not open"):
            call()
    assert not (tmp_path / "runs.db").exists()


@pytest.mark.parametrize("kind", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_refused_without_waiting(tmp_path, kind):
    """Opening a named pipe waits for its other end, for ever, and here with the folder's lock."""
    kind(tmp_path / "runs.db")
    with pytest.raises(StoreFailed, match="no regular file"):
        SqliteStore(tmp_path / "runs.db").open()


def test_a_name_too_long_for_the_system_is_a_failure_of_the_store(tmp_path):
    with pytest.raises(StoreFailed, match="too long"):
        SqliteStore(tmp_path / ("x" * 300)).open()


@pytest.mark.parametrize("journal", [b"runs.db", 5, None, "a\0b", "\ud800", ""])
def test_what_is_no_path_is_no_journal(journal):
    """Before anything is opened, and in words of ours."""
    with pytest.raises(ValueError, match=r'such as "runs\.db"'):
        open_store(journal)


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (sqlite3.SQLITE_FULL, StoreFailed, "no space left on device"),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreFailed, "input/output error"),
        (sqlite3.SQLITE_IOERR_WRITE, StoreFailed, "input/output error"),
        (sqlite3.SQLITE_READONLY_DIRECTORY, StoreFailed, "only read"),
        (sqlite3.SQLITE_CANTOPEN, StoreFailed, "cannot be opened"),
        (sqlite3.SQLITE_PERM, StoreFailed, "permission denied"),
        (sqlite3.SQLITE_BUSY_RECOVERY, StoreLocked, "another process held it for more than 10 s"),
        (sqlite3.SQLITE_LOCKED, StoreLocked, "another process held it"),
        (sqlite3.SQLITE_CORRUPT, StoreDamaged, "unreadable"),
        (sqlite3.SQLITE_NOTADB, StoreDamaged, "unreadable"),
    ],
)
def test_each_code_has_its_words(code, kind, words):
    """The base code decides; the rest of it tells where it happened."""
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorcode, error.sqlite_errorname = code, "SQLITE_X"
    told = translated(error)
    assert type(told) is kind
    assert words in str(told)


def test_an_unknown_error_keeps_its_text():
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.Error) as caught:
        connection.execute("SELECT 1 FROM nowhere")
    assert str(translated(caught.value)) == "no such table: nowhere"


def test_a_failing_mark_file_is_a_failed_store(tmp_path):
    """It cannot be made: a folder lies in its place."""
    (tmp_path / "runs.db-marks").mkdir()
    with pytest.raises(StoreFailed):
        SqliteStore(tmp_path / "runs.db").open()
