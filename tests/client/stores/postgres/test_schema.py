"""The journal's tables in PostgreSQL as others see them: names, columns, view, versions."""

from __future__ import annotations

import concurrent.futures

import pytest

from reattach.core.messages import Mark
from reattach.stores.base import StoreDamaged, StoreNewer, Write
from reattach.stores.postgres import PostgresStore, line
from reattach.stores.sqlite import SqliteStore
from reattach.testing.stores import arrival, begun, events, gap, mark_at


def columns(database) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for table, column in database.sql(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, ordinal_position",
        database.schema,
    ):
        found.setdefault(table, []).append(column)
    return found


def test_tables_and_columns_are_those_of_sqlite(store, database, tmp_path):
    """Whose are compared with the surface page's; so a statement for one is right for the other."""
    import sqlite3
    from contextlib import closing

    other = SqliteStore(tmp_path / "runs.db")
    other.open()
    other.close()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'reattach%' AND type != 'index'")
        same = {
            name: [column[1] for column in connection.execute(f"PRAGMA table_info({name})")]
            for (name,) in names.fetchall()
        }
    assert columns(database) == same


def test_the_view_shows_every_event_and_no_gap(store, database):
    row, lease, _ = begun(store)
    store.commit([events(lease, 1, 2), gap(lease, 3)])
    behind = Write(lease.run, lease.token, store.row(row.run).committed, Mark(4, "e1", 13), (arrival(13),))
    store.commit([behind])
    found = database.sql("SELECT position, cursor, id, type, text, data::text FROM reattach_events ORDER BY position")
    assert [each[0] for each in found] == [1, 2, 4]
    assert found[0] == (1, "e1.1", "e1", "text.delta", "word 1 ", '{"text": "word 1 "}')


def test_the_view_shows_what_postgresql_cannot_hold_as_a_mark_of_its_own(store, database):
    """NUL and half a surrogate pair; an emoji stays one. The journal itself keeps all of it."""
    row, lease, _ = begun(store)
    text = "a\x00b\ud83dc\ude42d🙂e"
    store.commit([Write(lease.run, lease.token, Mark(), mark_at(1), (arrival(1, text),))])
    assert database.sql("SELECT text, data ->> 'text' FROM reattach_events") == [("a�b�c�d🙂e", "a�b�c�d🙂e")]
    assert store.read(row.run, 0, 1)[0].element["text"] == text


@pytest.mark.parametrize(("value", "error"), [("999", StoreNewer), ("new", StoreDamaged)])
def test_a_schema_that_is_not_known_is_refused_and_left_alone(store, database, value, error):
    store.close()
    database.sql("UPDATE reattach_meta SET value = %s WHERE name = 'schema'", value)
    before = database.sql("SELECT * FROM reattach_meta ORDER BY name")
    with pytest.raises(error):
        store.open()
    store.close()
    assert database.sql("SELECT * FROM reattach_meta ORDER BY name") == before


def test_openers_at_once_make_the_tables_once(database):
    """Under a lock; none sees half of them."""
    stores = [PostgresStore(database.url) for _ in range(6)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(PostgresStore.open, stores))
    for each in stores:
        each.close()
    assert database.sql("SELECT count(*) FROM reattach_meta") == [(2,)]


def test_receipts_of_the_dead_are_removed_after_some_days(store, database):
    """A living one's, too, should it be that old: it writes a new one."""
    begun(store)
    database.sql(
        "UPDATE reattach_meta SET name = replace(name, substr(name, 9, 10), '2020-01-01') WHERE name LIKE 'receipt:%%'"
    )
    assert line.KEEP_DAYS < 365
    with_new = PostgresStore(database.url)
    with_new.open()
    assert database.sql("SELECT 1 FROM reattach_meta WHERE name LIKE 'receipt:%%'") == []
    begun(store, "run_2")
    assert len(database.sql("SELECT 1 FROM reattach_meta WHERE name LIKE 'receipt:%%'")) == 1
    with_new.close()


def test_the_users_tables_beside_the_journals_are_left_alone(store, database):
    database.sql("CREATE TABLE reattached (x int)")
    store.close()
    store.open()
    assert "reattached" in columns(database)


def test_a_commit_is_on_the_servers_disk_whatever_its_default(store, database):
    """synchronous_commit = off would lose what was told durable."""
    assert store._writer.session().execute("SHOW synchronous_commit").fetchone() == ("on",)
    store.close()
    lazy = PostgresStore(database.url.replace("&options=", "&options=-c%20synchronous_commit%3Doff%20"))
    lazy.open()
    assert lazy._writer.session().execute("SHOW synchronous_commit").fetchone() == ("on",)
    lazy.close()
