"""A journal of an older schema is brought up in one transaction, a newer one is refused by name and left as it is."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import reattach
from reattach import errors
from reattach.stores.base import Intent, StoreFailed, StoreNewer
from reattach.stores.sqlite import SqliteStore, schema
from reattach.stores.sqlite.inspection import inspect
from reattach.testing.stores import PROFILE, SERVER

HERE = Path(__file__).parent
OLD = (HERE / "journal_of_schema_1.sql").read_text()
USED_BY_NOBODY = {"reattach_seen", "head", "resume_with"}


@pytest.fixture
def old(path: Path) -> Path:
    """A file as version 1 wrote it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD)
    return path


def version(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT value FROM reattach_meta WHERE name = 'schema'").fetchone()[0]


def shape(path: Path) -> set[tuple[str, str]]:
    """Every table and view of ours with each of its columns."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'reattach%'").fetchall()
        return {(name, row[1]) for (name,) in names for row in connection.execute(f"PRAGMA table_info({name})")}


def is_whole(path: Path) -> None:
    """All that version 1 had written is there, and goes on."""
    store = SqliteStore(path)
    store.open()
    first, second, third = reversed(store.rows())
    assert (first.run_id, first.key, first.status, first.incarnation) == ("run_1", "order-41", "completed", 2)
    assert (first.committed.position, first.committed.cursor, first.handed_out) == (4, "e1.13", True)
    assert [(each.position, each.element["kind"]) for each in store.read(first.run, 0, 10)] == [
        (1, "text"),
        (2, "text"),
        (3, "gap"),
        (4, "text"),
    ]
    assert store.consumers(first.run) == {"main": 2}
    assert (second.key, second.run_id, second.request) == ("order-42", None, '{"input":2}')
    assert (third.run_id, third.needs) == ("run_3", "repair")
    assert store.intend(Intent(SERVER, PROFILE, "order-41", "{}", "sha-1"))[1] is False
    store.close()
    assert version(path) == str(schema.VERSION)
    assert inspect(str(path)).violations == ()


def test_an_older_journal_is_brought_up_when_it_is_opened(old):
    """With all that is in it; and opening it again changes nothing."""
    assert version(old) == "1"
    is_whole(old)
    is_whole(old)


def test_a_migrated_journal_looks_like_a_new_one(old, tmp_path):
    """The same tables and columns, whichever version it began with."""
    SqliteStore(old).open()
    fresh = tmp_path / "fresh.db"
    SqliteStore(fresh).open()
    assert shape(old) == shape(fresh)
    assert not {name for pair in shape(old) for name in pair} & USED_BY_NOBODY


def test_an_older_journal_gives_room_back_too(old):
    """It was not made to shrink in steps: it is rewritten once, when it is pruned, and shrinks in steps from then on."""
    store = SqliteStore(old)
    store.open()
    store._writer.execute("PRAGMA auto_vacuum").fetchone()
    assert store.prune(1, 4) is False
    assert store.compact() is False
    store.close()
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    store.open()
    assert [each.element["kind"] for each in store.read(1, 0, 10)] == ["gap"]
    store.close()


def test_a_users_own_database_is_never_rewritten(old):
    """Their tables lie beside ours: the mode of their file is theirs, free pages are used again."""
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("CREATE TABLE orders (id)")
    store = SqliteStore(old)
    store.open()
    store.prune(1, 4)
    assert store.compact() is False
    store.close()
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (0,)


def test_a_migration_that_fails_leaves_the_old_journal(old, monkeypatch):
    """All steps are one transaction: the last statement goes wrong, and nothing was done."""
    before = shape(old)
    monkeypatch.setattr(schema, "_STEPS", (*schema._STEPS[:1], (*schema._STEPS[1], "DROP TABLE nowhere")))
    with pytest.raises(StoreFailed, match="nowhere"):
        SqliteStore(old).open()
    assert (version(old), shape(old)) == ("1", before)
    monkeypatch.undo()
    is_whole(old)


def test_killed_at_any_statement_of_a_migration_it_is_old_or_new(tmp_path):
    """And the next process goes on with it."""
    seen = set()
    for number in range(1, 200, 2):
        path = tmp_path / f"{number}.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(OLD)
        done = subprocess.run(
            [sys.executable, str(HERE / "child_opens.py"), str(path), str(number)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode in (0, -9), done.stderr
        seen.add(version(path))
        is_whole(path)
        if done.stdout.strip() == "done":
            break
    else:
        raise AssertionError("the child never came to its end")
    assert seen == {"1", str(schema.VERSION)}
    assert number > 15, "too few statements to mean anything"


def test_a_newer_journal_is_refused_by_name_and_left_as_it_is(old):
    """By the store, by the client, and by the check: nothing is moved, nothing written."""
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("UPDATE reattach_meta SET value = ? WHERE name = 'schema'", (str(schema.VERSION + 1),))
    before = hashlib.sha256(old.read_bytes()).digest()
    with pytest.raises(StoreNewer, match=f"of schema {schema.VERSION + 1}, newer"):
        SqliteStore(old).open()
    with (
        reattach.Client("http://127.0.0.1:1", old) as client,
        pytest.raises(errors.JournalDamaged, match="newer than this version of reattach knows") as caught,
    ):
        client.runs()
    assert isinstance(caught.value, errors.StoreError)
    assert hashlib.sha256(old.read_bytes()).digest() == before
    assert [file.name for file in old.parent.iterdir()] == [old.name]
