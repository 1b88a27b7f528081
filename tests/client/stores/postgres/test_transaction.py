"""A user's own transaction on PostgreSQL: what it may do, what it may not, and that it holds nobody up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import psycopg
import pytest
from psycopg.rows import dict_row

from postgres_proxy import Proxy
from postgres_stage import Database
from reattach.stores.base import ForbiddenSql, Lease, LeaseGone, StoreFailed, StoreUnreachable
from reattach.stores.leases import current_holder
from reattach.stores.postgres import PostgresStore
from reattach.testing.stores import begun, events

ROW = "INSERT INTO bill VALUES (%s, %s)"


class Stage(NamedTuple):
    store: PostgresStore
    database: Database
    run: int
    writer: Lease
    main: Lease

    def bill(self) -> list[int]:
        return [cents for (cents,) in self.database.sql("SELECT cents FROM bill ORDER BY cents")]


@pytest.fixture
def stage(store: PostgresStore, database: Database) -> Iterator[Stage]:
    """A run with five events, none applied, and the user's table."""
    database.sql("CREATE TABLE bill (event text UNIQUE, cents bigint)")
    row, writer, (main,) = begun(store, "run_1", "main")
    store.commit([events(writer, 1, 5)])
    return Stage(store, database, row.run, writer, main)


ENDING = [
    "COMMIT", "  commit work", "END", "ABORT", "ROLLBACK", "rollback and chain", "BEGIN", "START TRANSACTION",
    "/* now */ COMMIT", "-- now\nCOMMIT", "PREPARE TRANSACTION 'x'",
]  # fmt: skip


def test_what_would_end_the_transaction_is_never_sent(stage):
    """And the transaction goes on as if nothing had been said."""
    transaction = stage.store.begin(stage.main, expected=0)
    transaction.execute(ROW, ("e1", 1))
    for sql in ENDING:
        with pytest.raises(ForbiddenSql):
            transaction.execute(sql, ())
        with pytest.raises(ForbiddenSql):
            transaction.call(lambda connection, sql=sql: connection.execute(sql))
        assert stage.bill() == [], sql
    transaction.commit(1)
    assert stage.bill() == [1]
    assert stage.store.applied(stage.run, "main") == 1


def test_nor_does_the_connection_end_it(stage):
    """An ORM's session would commit there."""
    transaction = stage.store.begin(stage.main, expected=0)
    transaction.execute(ROW, ("e1", 1))
    for end in ("commit", "rollback", "close"):
        with pytest.raises(ForbiddenSql):
            transaction.call(lambda connection, end=end: getattr(connection, end)())
    transaction.commit(1)
    assert stage.bill() == [1]


def test_several_statements_in_one_text_are_refused_by_the_server(stage):
    """So that none hides behind another."""
    transaction = stage.store.begin(stage.main, expected=0)
    with pytest.raises(psycopg.errors.SyntaxError):
        transaction.execute("INSERT INTO bill VALUES ('e1', 1); COMMIT", ())
    transaction.rollback()
    assert stage.bill() == []


def test_an_end_that_nobody_could_see_is_found_out(stage):
    """Sent below the driver's cursors. What it kept is said; the mark does not move."""
    transaction = stage.store.begin(stage.main, expected=0)
    transaction.execute(ROW, ("e1", 1))
    transaction.call(lambda connection: connection.pgconn.exec_(b"COMMIT"))
    transaction.execute(ROW, ("e2", 2))
    with pytest.raises(ForbiddenSql, match="ended the transaction"):
        transaction.commit(1)
    assert stage.bill() == [1]
    assert stage.store.applied(stage.run, "main") == 0


def test_savepoints_are_the_users(stage):
    """Without one PostgreSQL keeps nothing after a statement that failed."""
    transaction = stage.store.begin(stage.main, expected=0)
    transaction.execute(ROW, ("e1", 1))

    def tries(connection):
        for cents in (2, 3):
            try:
                with connection.transaction():
                    connection.execute(ROW, ("e1", cents))
            except psycopg.errors.UniqueViolation:
                continue

    transaction.call(tries)
    transaction.execute("SAVEPOINT mine", ())
    transaction.execute(ROW, ("e4", 4))
    transaction.execute("ROLLBACK TO SAVEPOINT mine", ())
    transaction.commit(1)
    assert stage.bill() == [1]


def test_after_a_statement_that_failed_nothing_is_kept_and_that_is_said(stage):
    """The error itself passes unchanged; swallowed, the mark does not move either."""
    transaction = stage.store.begin(stage.main, expected=0)
    transaction.execute(ROW, ("e1", 1))
    with pytest.raises(psycopg.errors.UndefinedTable):
        transaction.execute("SELECT * FROM nowhere", ())
    with pytest.raises(ForbiddenSql, match="savepoint"):
        transaction.commit(1)
    assert stage.bill() == []
    assert stage.store.applied(stage.run, "main") == 0


def test_what_the_user_put_off_to_the_end_is_the_users_error(stage):
    stage.database.sql("CREATE TABLE part (of text REFERENCES bill (event) DEFERRABLE INITIALLY DEFERRED)")
    transaction = stage.store.begin(stage.main, expected=0)
    transaction.execute("INSERT INTO part VALUES ('nothing')", ())
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        transaction.commit(1)
    assert stage.store.applied(stage.run, "main") == 0


TAMPERING = [
    "UPDATE reattach_marks SET applied = 5",
    "DELETE FROM reattach_batches",
    "INSERT INTO reattach_meta VALUES ('mine', '1')",
    "TRUNCATE reattach_gaps",
    "ALTER TABLE reattach_runs ADD COLUMN mine text",
    "WITH gone AS (DELETE FROM reattach_leases RETURNING 1) SELECT * FROM gone",
]


def test_whoever_touches_the_journals_tables_keeps_nothing(stage):
    for sql in TAMPERING:
        transaction = stage.store.begin(stage.main, expected=0)
        transaction.execute(ROW, ("e1", 1))
        transaction.execute(sql, ())
        with pytest.raises(ForbiddenSql, match="reattach_"):
            transaction.commit(1)
        assert stage.bill() == [], sql
        assert stage.store.applied(stage.run, "main") == 0
    assert stage.store.commit([events(stage.writer, 6, 6)]) == [None]


def test_a_trigger_that_touches_them_is_found_too(stage):
    stage.database.sql(
        """CREATE FUNCTION tamper() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN UPDATE reattach_marks SET applied = 4; RETURN NEW; END$$"""
    )
    stage.database.sql("CREATE TRIGGER t AFTER INSERT ON bill FOR EACH ROW EXECUTE FUNCTION tamper()")
    transaction = stage.store.begin(stage.main, expected=0)
    transaction.execute(ROW, ("e1", 1))
    with pytest.raises(ForbiddenSql, match="reattach_marks"):
        transaction.commit(1)
    assert stage.bill() == []


def test_the_journal_may_be_read(stage):
    transaction = stage.store.begin(stage.main, expected=0)
    assert transaction.execute("SELECT count(*) FROM reattach_events", ()) == [(5,)]
    assert transaction.execute("SELECT 'a' LIKE '%'", ()) == [(True,)], "without parameters a % is a %"
    assert transaction.execute("SELECT %(a)s::int", {"a": 3}) == [(3,)]
    transaction.commit(1)


def test_what_it_set_for_its_session_is_not_set_for_the_next(stage):
    transaction = stage.store.begin(stage.main, expected=0)
    transaction.execute("SET search_path TO pg_catalog", ())
    transaction.commit(1)
    transaction = stage.store.begin(stage.main, expected=1)
    transaction.execute(ROW, ("e2", 2))
    transaction.commit(2)
    assert stage.bill() == [2]


def test_what_it_made_of_the_connection_holds_until_its_end(stage):
    """Neither the mark is read through a factory of the user's, nor the next transaction's rows."""

    def made(connection):
        connection.row_factory = dict_row
        connection.cursor_factory = psycopg.Cursor
        connection.execute(ROW, ("e1", 1))
        return connection.execute("SELECT cents FROM bill").fetchone()

    transaction = stage.store.begin(stage.main, expected=0)
    assert transaction.call(made) == {"cents": 1}
    transaction.commit(1)
    transaction = stage.store.begin(stage.main, expected=1)
    assert transaction.execute("SELECT cents FROM bill", ()) == [(1,)]
    with pytest.raises(ForbiddenSql):
        transaction.execute("COMMIT", ())
    transaction.commit(2)
    assert stage.store.applied(stage.run, "main") == 2


def test_an_open_one_holds_up_neither_commits_nor_leases_nor_other_marks(stage):
    """And two may be open at once."""
    main = stage.store.begin(stage.main, expected=0)
    main.execute(ROW, ("e1", 1))
    other = stage.store.lease(stage.run, "other", current_holder("test"), 60.0)
    second = stage.store.begin(other, expected=0)
    second.execute(ROW, ("e2", 2))
    assert stage.store.commit([events(stage.writer, 6, 6)]) == [None]
    assert stage.store.renew([stage.writer, stage.main, other], 60.0) == []
    second.commit(3)
    main.commit(1)
    assert stage.bill() == [1, 2]
    assert stage.store.consumers(stage.run) == {"main": 1, "other": 3}


def test_one_that_was_taken_over_meanwhile_keeps_nothing(stage):
    """Fenced at its end, under the lease's lock."""
    transaction = stage.store.begin(stage.main, expected=0)
    transaction.execute(ROW, ("e1", 1))
    stage.database.sql("UPDATE reattach_leases SET expires_at = '2000-01-01T00:00:00.000000Z', holder = NULL")
    assert isinstance(stage.store.lease(stage.run, "main", current_holder("next"), 60.0), Lease)
    with pytest.raises(LeaseGone):
        transaction.commit(1)
    assert stage.bill() == []
    assert stage.store.applied(stage.run, "main") == 0


def test_one_whose_connection_is_lost_says_so_and_keeps_nothing(stage):
    with Proxy(stage.database.server.port) as proxy:
        store = PostgresStore(stage.database.through(proxy.port))
        store.open()
        row = store.row(stage.run)
        other = store.lease(row.run, "other", current_holder("test"), 60.0)
        transaction = store.begin(other, expected=0)
        transaction.execute(ROW, ("e1", 1))
        proxy.arm(1)
        with pytest.raises(StoreUnreachable, match="nothing of the transaction was kept"):
            transaction.execute(ROW, ("e2", 2))
        transaction.rollback()
        assert stage.bill() == []
        transaction = store.begin(other, expected=0)
        transaction.execute(ROW, ("e3", 3))
        transaction.commit(1)
        store.close()
    assert stage.bill() == [3]


def test_a_transaction_that_is_over_is_over(stage):
    transaction = stage.store.begin(stage.main, expected=0)
    transaction.commit(1)
    for call in (lambda: transaction.execute("SELECT 1", ()), lambda: transaction.commit(2)):
        with pytest.raises(ForbiddenSql, match="over"):
            call()
    transaction.rollback()
    stage.store.close()
    with pytest.raises(StoreFailed):
        stage.store.begin(stage.main, expected=1)
