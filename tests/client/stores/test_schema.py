"""The journal's file as others see it: names, columns, view, modes, and what else may be in it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from reattach.core.messages import Mark
from reattach.stores import open_store
from reattach.stores.base import StoreDamaged, StoreFailed, StoreNewer, Write
from reattach.stores.memory import MemoryStore
from reattach.stores.sqlite import SqliteStore
from reattach.testing.stores import arrival, begun, events, gap, mark_at

TABLES = """
    reattach_meta    (name, value)
    reattach_runs    (run, server, profile, run_id, key, session_id, continues, status, incarnation, epoch, cursor, cursor_id, last_sequence, again_to, needs, request, request_sha256, sent_at, outcome, handed_out, created_at, settled_at, updated_at)
    reattach_batches (run, batch, first, events, committed_at)
    reattach_marks   (run, consumer, applied, updated_at)
    reattach_gaps    (run, at, reason, after, until, missing, snapshot, noticed_at)
    reattach_leases  (run, consumer, holder, since, token, expires_at)
    reattach_events  (run_id, key, position, cursor, id, type, text, data, committed_at)
"""  # noqa: E501  # as the surface page has them, line by line, without what no code uses (schema.py, version 2)


def query(path: Path, sql: str, *parameters: object) -> list[tuple]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(sql, parameters).fetchall()


def test_tables_and_columns_are_exactly_those_of_the_surface(store, path):
    told = {name: columns.split(", ") for name, columns in re.findall(r"(\w+)\s+\((.*)\)", TABLES)}
    names = query(path, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name LIKE 'reattach%'")
    assert {name for (name,) in names} == set(told)
    for name, columns in told.items():
        assert [column[1] for column in query(path, f"PRAGMA table_info({name})")] == columns


def test_the_view_shows_every_event_and_no_gap(store, path):
    """One row an event by its position, also behind a gap, which only takes a number."""
    row, lease, _ = begun(store)
    store.commit([events(lease, 1, 2), gap(lease, 3)])
    behind = Write(lease.run, lease.token, store.row(row.run).committed, Mark(4, "e1", 13), (arrival(13),))
    store.commit([behind])
    found = query(path, "SELECT position, cursor, id, type, text, data FROM reattach_events ORDER BY position")
    assert [each[0] for each in found] == [1, 2, 4]
    assert found[0] == (1, "e1.1", "e1", "text.delta", "word 1 ", '{"text":"word 1 "}')


def test_the_view_finds_data_in_either_place(store, path):
    """A vendor's payload may be the data itself; null data of a wrapped one is null, not the next best."""
    _, lease, _ = begun(store)
    whole = arrival(1)._replace(wrapped=False, stored='{"delta":"a"}')
    null = arrival(2)._replace(stored='{"id":"e2","data":null}')
    plain = arrival(3)._replace(stored='{"id":"e3","data":"text"}', text="")
    store.commit([Write(lease.run, lease.token, Mark(), mark_at(3), (whole, null, plain))])
    found = query(path, "SELECT data, text FROM reattach_events ORDER BY position")
    assert found == [('{"delta":"a"}', "word 1 "), (None, "word 2 "), ("text", "")]


def test_a_commit_is_one_row(store, path):
    """And its number is the position of its last event."""
    _, lease, _ = begun(store)
    store.commit([events(lease, 1, 100), events(lease, 101, 101)])
    assert query(path, "SELECT batch, first, json_array_length(events) FROM reattach_batches") == [
        (100, 1, 100),
        (101, 101, 1),
    ]


def test_times_are_rfc_3339_in_utc(path):
    store = SqliteStore(path, wall=lambda: 1_800_000_000.25)
    store.open()
    _, lease, _ = begun(store)
    store.commit([events(lease, 1, 1)])
    store.close()
    times = query(path, "SELECT created_at, updated_at, (SELECT committed_at FROM reattach_events) FROM reattach_runs")
    assert times == [("2027-01-15T08:00:00.250000Z",) * 3]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_only_the_owner_may_read_the_journal(path, umask):
    """Whatever the umask: also the log, its index and the marks, which hold parts of it."""
    before = os.umask(umask)
    try:
        store = SqliteStore(path)
        store.open()
        _, lease, _ = begun(store)
        store.commit([events(lease, 1, 1)])
    finally:
        os.umask(before)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    store.close()
    assert modes == dict.fromkeys(["runs.db", "runs.db-wal", "runs.db-shm", "runs.db-marks"], 0o600)


def test_the_database_is_flushed_at_every_commit(store, path):
    """WAL on disk, FULL on the connection that writes."""
    assert query(path, "PRAGMA journal_mode") == [("wal",)]
    assert store._writer.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_users_own_database_gets_our_tables_beside_theirs(path):
    query(path, "CREATE TABLE orders (id)")
    query(path, "INSERT INTO orders VALUES (41)")
    path.chmod(0o640)
    store = SqliteStore(path)
    store.open()
    _, lease, _ = begun(store)
    assert store.commit([events(lease, 1, 1)]) == [None]
    store.close()
    assert query(path, "SELECT id FROM orders") == [(41,)]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640, "their mode is theirs"
    assert stat.S_IMODE(path.with_name("runs.db-marks").stat().st_mode) == 0o640


def test_a_newer_schema_is_refused_and_not_changed(store, path):
    begun(store)
    store.close()
    query(path, "UPDATE reattach_meta SET value = '3' WHERE name = 'schema'")
    before = hashlib.sha256(path.read_bytes()).digest()
    with pytest.raises(StoreNewer, match="of schema 3, newer") as caught:
        SqliteStore(path).open()
    assert caught.value.moved_to is None
    assert hashlib.sha256(path.read_bytes()).digest() == before


def test_a_schema_that_is_no_number_is_left_where_it_is(store, path):
    """The tables can be read, and may lie beside a user's own: nothing is moved."""
    store.close()
    query(path, "UPDATE reattach_meta SET value = 'two' WHERE name = 'schema'")
    with pytest.raises(StoreDamaged, match="without a schema version") as caught:
        SqliteStore(path).open()
    assert caught.value.moved_to is None
    assert path.exists()


def test_a_missing_folder_is_named_and_not_made(tmp_path):
    with pytest.raises(StoreFailed, match="nowhere' does not exist"):
        SqliteStore(tmp_path / "nowhere" / "runs.db").open()
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_is_no_journal(tmp_path):
    with pytest.raises(StoreFailed):
        SqliteStore(tmp_path).open()
    assert tmp_path.is_dir()


def test_a_link_leads_to_one_journal(store, path):
    """Through either name the log and the marks are the same files."""
    link = path.with_name("link.db")
    link.symlink_to(path)
    row, lease, (main,) = begun(store, "run_1", "main")
    store.commit([events(lease, 1, 2)])
    store.note(main, 2)
    other = SqliteStore(link)
    other.open()
    assert other.applied(row.run, "main") == 2
    other.close()
    assert not path.with_name("link.db-marks").exists()


def test_open_store_goes_by_the_name(tmp_path):
    assert isinstance(open_store(":memory:"), MemoryStore)
    assert isinstance(open_store("runs.db"), SqliteStore)
    assert isinstance(open_store(tmp_path / "runs.sqlite3"), SqliteStore)
    ready = MemoryStore()
    assert open_store(ready) is ready


@pytest.mark.parametrize("name", ["mysql://me:secret@db/runs", "redis://x", "", " "])
def test_a_store_that_is_not_here_is_said_so(name):
    with pytest.raises(ValueError, match=re.escape('such as "runs.db"')) as caught:
        open_store(name)
    assert "secret" not in str(caught.value)


def test_events_are_json_that_others_can_read(store, path):
    _, lease, _ = begun(store)
    store.commit([events(lease, 1, 2)])
    ((text,),) = query(path, "SELECT events FROM reattach_batches")
    assert [element["event"]["id"] for element in json.loads(text)] == ["e1", "e2"]
