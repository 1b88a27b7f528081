"""The rules of a user's own transaction: their rows and the mark together, and nothing that would break the journal."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from reattach.stores.base import Busy, ForbiddenSql, Lease, LeaseGone, StoreLocked
from reattach.stores.leases import current_holder
from reattach.stores.sqlite import SqliteStore, files
from reattach.testing.stores import begun, events


@pytest.fixture
def main(store: SqliteStore, path: Path) -> Lease:
    """A consumer's lease on a run of nine events, and a table of the user's."""
    _, lease, (main,) = begun(store, "run_1", "main")
    store.commit([events(lease, 1, 9)])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE bill (event TEXT PRIMARY KEY, cents INTEGER)")
    return main


def billed(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [event for (event,) in connection.execute("SELECT event FROM bill ORDER BY event")]


def test_rows_and_mark_become_durable_together(store, main, path):
    transaction = store.begin(main, expected=0)
    transaction.execute("INSERT INTO bill VALUES (:event, :cents)", {"event": "e1", "cents": 999})
    assert transaction.call(lambda connection: connection.execute("SELECT cents FROM bill").fetchone()) == (999,)
    assert (billed(path), store.applied(main.run, "main")) == ([], 0), "nobody sees it before"
    transaction.commit(1)
    assert (billed(path), store.applied(main.run, "main")) == (["e1"], 1)


def test_rolling_back_leaves_neither(store, main, path):
    transaction = store.begin(main, expected=0)
    transaction.execute("INSERT INTO bill VALUES ('e1', 1)", ())
    transaction.rollback()
    transaction.rollback()
    assert (billed(path), store.applied(main.run, "main")) == ([], 0)
    store.begin(main, expected=0).rollback()


FORBIDDEN = [
    "COMMIT",
    "END",
    "ROLLBACK",
    "BEGIN",
    "SAVEPOINT a",
    "RELEASE a",
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "PRAGMA synchronous = OFF",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA writable_schema = ON",
    "PRAGMA wal_checkpoint",
    "UPDATE reattach_marks SET applied = 9",
    "INSERT INTO reattach_meta VALUES ('x', 'y')",
    "INSERT INTO Reattach_Meta VALUES ('x', 'y')",
    "DELETE FROM reattach_batches",
    "DROP TABLE reattach_runs",
    "DROP VIEW reattach_events",
    "ALTER TABLE reattach_runs ADD COLUMN mine",
    "CREATE TABLE reattach_mine (x)",
    "CREATE TABLE Reattach_Mine (x)",
    "CREATE TEMP TABLE reattach_mine (x)",
    "CREATE INDEX mine ON reattach_runs (status)",
    "CREATE INDEX reattach_mine ON bill (cents)",
    "CREATE TRIGGER mine AFTER INSERT ON reattach_marks BEGIN SELECT 1; END",
    "WITH x AS (SELECT 1) DELETE FROM reattach_leases",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_what_would_break_the_journal_is_denied(store, main, path, sql):
    """And the transaction goes on: it commits what it had."""
    transaction = store.begin(main, expected=0)
    transaction.execute("INSERT INTO bill VALUES ('e1', 1)", ())
    with pytest.raises(ForbiddenSql):
        transaction.execute(sql, ())
    with pytest.raises(ForbiddenSql):
        transaction.call(lambda connection: connection.execute(sql))
    transaction.commit(1)
    assert (billed(path), store.applied(main.run, "main")) == (["e1"], 1)


ALLOWED = [
    "CREATE TABLE mine (reattach_column)",
    "CREATE INDEX mine ON bill (cents)",
    "ALTER TABLE bill ADD COLUMN note",
    "DROP TABLE bill",
    "CREATE TRIGGER mine AFTER INSERT ON bill BEGIN UPDATE bill SET cents = 0; END",
    "CREATE VIEW mine AS SELECT * FROM reattach_events",
    "SELECT text FROM reattach_events",
    "SELECT applied FROM reattach_marks",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 9) SELECT * FROM n",
    "PRAGMA table_info(bill)",
    "PRAGMA table_info(reattach_runs)",
    "PRAGMA foreign_keys",
    "PRAGMA user_version",
]


@pytest.mark.parametrize("sql", ALLOWED)
def test_all_else_is_the_users(store, main, sql):
    """Also reading the journal, and looking at its tables as an ORM does."""
    transaction = store.begin(main, expected=0)
    transaction.execute(sql, ())
    transaction.commit(1)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda connection: connection.commit(),
        lambda connection: connection.rollback(),
        lambda connection: connection.executescript("INSERT INTO bill VALUES ('e2', 2)"),
        lambda connection: connection.execute("commit"),
        lambda connection: connection.close(),
        lambda connection: setattr(connection, "isolation_level", None),
    ],
    ids=["commit", "rollback", "script", "lower case", "close", "isolation"],
)
def test_the_drivers_own_ways_to_commit_are_denied(store, main, path, misuse):
    """A script begins with a commit of its own."""
    transaction = store.begin(main, expected=0)
    transaction.execute("INSERT INTO bill VALUES ('e1', 1)", ())
    with pytest.raises(ForbiddenSql):
        transaction.call(misuse)
    transaction.rollback()
    assert billed(path) == []
    store.begin(main, expected=0).commit(1)


def odd(cursor, row):
    """As users write it: a row is a mapping."""
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def test_what_it_made_of_the_connection_holds_until_its_end(store, main, path):
    """Neither the mark nor what is written later is read through a factory of the user's."""

    def made(connection):
        connection.row_factory = odd
        connection.text_factory = bytes
        connection.isolation_level = "DEFERRED"
        connection.execute("INSERT INTO bill VALUES ('e1', 1)")
        return connection.execute("SELECT event FROM bill").fetchone()

    transaction = store.begin(main, expected=0)
    assert transaction.call(made) == {"event": b"e1"}
    transaction.commit(1)
    store.note(main, 2)
    transaction = store.begin(main, expected=2)
    assert transaction.execute("SELECT event FROM bill", ()) == [("e1",)]
    transaction.commit(3)
    assert (billed(path), store.applied(main.run, "main")) == (["e1"], 3)


def test_an_error_that_a_library_made_of_a_denial_is_still_named(store, main):
    def like_an_orm(connection: sqlite3.Connection) -> None:
        try:
            connection.execute("DELETE FROM reattach_runs")
        except sqlite3.DatabaseError as error:
            raise RuntimeError("(sqlite3.DatabaseError) not authorized") from error

    transaction = store.begin(main, expected=0)
    with pytest.raises(ForbiddenSql, match="reattach_runs is the journal's own"):
        transaction.call(like_an_orm)
    transaction.rollback()


def test_a_trigger_of_the_users_cannot_reach_the_journal(store, main):
    """Not even one that was made from outside, before."""
    with closing(sqlite3.connect(store.name)) as connection, connection:
        connection.execute("CREATE TRIGGER evil AFTER INSERT ON bill BEGIN DELETE FROM reattach_batches; END")
    transaction = store.begin(main, expected=0)
    with pytest.raises(ForbiddenSql):
        transaction.execute("INSERT INTO bill VALUES ('e1', 1)", ())
    transaction.rollback()
    assert len(store.read(main.run, 0, 100)) == 9


def test_an_error_of_the_users_sql_passes_unchanged(store, main, path):
    """What came before it in the transaction is still there."""
    transaction = store.begin(main, expected=0)
    transaction.execute("INSERT INTO bill VALUES ('e1', 1)", ())
    with pytest.raises(sqlite3.IntegrityError):
        transaction.execute("INSERT INTO bill VALUES ('e1', 1)", ())
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        transaction.execute("INSERT INTO nowhere VALUES (1)", ())
    with pytest.raises(KeyError):
        transaction.call(lambda connection: {}["theirs"])
    transaction.commit(1)
    assert billed(path) == ["e1"]


def test_a_statement_that_rolls_all_back_ends_the_transaction(store, main, path):
    """INSERT OR ROLLBACK is no COMMIT, but what comes after it would commit by itself: nothing more is done."""

    def careless(connection: sqlite3.Connection) -> None:
        with suppress(sqlite3.IntegrityError):
            connection.execute("INSERT OR ROLLBACK INTO bill VALUES ('e1', 1)")
        connection.execute("INSERT INTO bill VALUES ('e9', 1)")

    transaction = store.begin(main, expected=0)
    transaction.execute("INSERT INTO bill VALUES ('e1', 1)", ())
    with pytest.raises(ForbiddenSql, match="rolled the transaction back"):
        transaction.call(careless)
    with pytest.raises(ForbiddenSql, match="rolled the transaction back"):
        transaction.execute("INSERT INTO bill VALUES ('e2', 1)", ())
    with pytest.raises(ForbiddenSql):
        transaction.commit(1)
    assert (billed(path), store.applied(main.run, "main")) == ([], 0)
    store.mark(main, 1)


def test_the_journals_own_statements_are_free_again(store, main):
    """Whichever way the transaction ended."""
    for end in (lambda t: t.commit(1), lambda t: t.rollback()):
        end(store.begin(main, expected=store.applied(main.run, "main")))
        store.mark(main, 1)
        store.need(main.run, "")


def test_a_noted_mark_counts_as_the_expected_one(store, main):
    """The event before was confirmed by asking for this one, without a flush."""
    store.note(main, 3)
    with pytest.raises(LeaseGone, match="at 3, not at 0"):
        store.begin(main, expected=0)
    store.begin(main, expected=3).commit(4)
    assert store.applied(main.run, "main") == 4


def test_a_former_owner_cannot_begin(store, main):
    store.release(main)
    assert isinstance(store.lease(main.run, "main", current_holder("next"), 60.0), Lease)
    with pytest.raises(LeaseGone):
        store.begin(main, expected=0)


def test_the_mark_stays_below_what_is_committed(store, main, path):
    """Then nothing is kept."""
    transaction = store.begin(main, expected=0)
    transaction.execute("INSERT INTO bill VALUES ('e1', 1)", ())
    with pytest.raises(ValueError, match="above committed 9"):
        transaction.commit(10)
    assert (billed(path), store.applied(main.run, "main")) == ([], 0)


def test_the_turn_is_taken_while_it_is_open(store, main):
    """A write beside it in this process is a bug of ours; reading goes on."""
    transaction = store.begin(main, expected=0)
    with pytest.raises(RuntimeError, match="has the writer's turn"):
        store.carry() or store.mark(main, 1)
    assert len(store.read(main.run, 0, 100)) == 9
    transaction.rollback()
    with pytest.raises(ForbiddenSql, match="is over"):
        transaction.execute("SELECT 1", ())


def test_leases_outlive_a_long_transaction(path):
    """It has the write lock, so nobody took them; at its end they go on for their whole time."""
    now = [1_800_000_000.0]
    store = SqliteStore(path, wall=lambda: now[0], alive=lambda holder: None)
    store.open()
    row, lease, (main,) = begun(store, "run_1", "main")
    store.commit([events(lease, 1, 1)])
    transaction = store.begin(main, expected=0)
    now[0] += 100
    transaction.commit(1)
    now[0] += 50
    for consumer in ("", "main"):
        assert isinstance(store.lease(row.run, consumer, current_holder("next"), 60.0), Busy)
    store.close()


def test_another_process_waits_a_bounded_time_for_it(store, main, path, monkeypatch):
    """B77: not for ever, and it says what it waited for."""
    monkeypatch.setattr(files, "BUSY_SECONDS", 0.05)
    other = SqliteStore(path)
    other.open()
    transaction = store.begin(main, expected=0)
    with pytest.raises(StoreLocked, match="another process held it"):
        other.adopt("http://b", "native", "run_2")
    assert other.row(main.run).run_id == "run_1", "readers do not wait"
    transaction.rollback()
    other.adopt("http://b", "native", "run_2")
    other.close()


def test_closing_rolls_back_what_is_open(store, main, path):
    store.begin(main, expected=0).execute("INSERT INTO bill VALUES ('e1', 1)", ())
    store.close()
    assert billed(path) == []
