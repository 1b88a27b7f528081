"""The connection lost at any message (promise 4): nothing is doubled, nothing is missing, and nobody is told wrongly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import postgres_work
from postgres_proxy import Fate, Proxy
from postgres_stage import Database, server
from reattach.stores.base import StoreUnreachable
from reattach.stores.postgres import PostgresStore, line
from reattach.testing.stores import begun, events

LAST = 1500  # more messages than the whole life has


def lived(database: Database, at: int, act: Callable[[], Fate] | Fate) -> bool:
    """Live through a proxy that does something before message `at`; return whether it came to that."""
    database.sql("DROP TABLE IF EXISTS bill")
    database.sql(postgres_work.TABLE)
    told: list[str] = []
    with Proxy(database.server.port) as proxy:
        store = PostgresStore(database.through(proxy.port))
        store.open()
        try:
            proxy.arm(at, act)
            postgres_work.work(store, told.append)
            acted = proxy.acted.is_set()
        finally:
            store.close()
    direct = PostgresStore(database.url)
    direct.open()
    postgres_work.is_whole(direct, told, database.sql("SELECT event FROM bill"))
    direct.close()
    assert told[-1] == "released"
    database.sql("TRUNCATE reattach_runs, reattach_batches, reattach_marks, reattach_gaps, reattach_leases")
    return acted


def every(database: Database, first: int, step: int, act: Callable[[], Fate] | Fate) -> int:
    for at in range(first, LAST, step):
        try:
            if not lived(database, at, act):
                return at
        except BaseException as error:
            error.add_note(f"at message {at}")
            raise
    raise AssertionError("the life never came to its end")


def test_cut_at_a_message_everything_is_there_once(database):
    """At each ninety-seventh: what was to be sent, or answered, is lost with the connection, and the caller notices nothing."""
    assert every(database, 3, 97, "cut") > 500


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(1, 6))
def test_cut_at_every_message_everything_is_there_once(database, first):
    """Five tests, which share them."""
    assert every(database, first, 5, "cut") > 500


def commits(database: Database, fate: Fate, message: int) -> PostgresStore:
    """Commit once, the connection being lost before the n-th message; return the journal, seen directly."""
    with Proxy(database.server.port) as proxy:
        store = PostgresStore(database.through(proxy.port))
        store.open()
        _, lease, _ = begun(store)
        proxy.arm(message, fate)
        assert store.commit([events(lease, 1, 3)]) == [None]
        assert proxy.acted.is_set()
        store.close()
    direct = PostgresStore(database.url)
    direct.open()
    return direct


def messages_of_a_commit(database: Database) -> int:
    with Proxy(database.server.port) as proxy:
        store = PostgresStore(database.through(proxy.port))
        store.open()
        _, lease, _ = begun(store, "counted")
        proxy.arm(None)
        store.commit([events(lease, 1, 3)])
        count = proxy.count
        store.close()
    return count


@pytest.mark.parametrize("back", [0, 1, 2], ids=["its last answer", "its answer", "the commit itself"])
def test_a_lost_commit_is_found_out(database, back):
    """The server says last that it is ready, before that that it committed; before that it is told to."""
    direct = commits(database, "cut", messages_of_a_commit(database) - back)
    run = next(row.run for row in direct.rows() if row.run_id == "run_1")
    assert [entry.position for entry in direct.read(run, 0, 9)] == [1, 2, 3]
    direct.close()


def test_a_server_that_falls_silent_is_left_for_a_new_session(database, monkeypatch):
    """Its open transaction would hold our rows for ever: it is ended from the new session."""
    monkeypatch.setattr(line, "ANSWER", 0.3)
    direct = commits(database, "mute", messages_of_a_commit(database) // 2)
    run = next(row.run for row in direct.rows() if row.run_id == "run_1")
    assert [entry.position for entry in direct.read(run, 0, 9)] == [1, 2, 3]
    direct.close()


def test_a_server_that_stays_away_fails_the_commit_in_bounded_time(database, monkeypatch):
    """With the address, without the password; and when it is back, the journal goes on where it stood."""
    proxy = Proxy(database.server.port)
    with proxy:
        store = PostgresStore(database.through(proxy.port))
        store.open()
        row, lease, _ = begun(store)
        monkeypatch.setattr(line, "PATIENCE", 0.5)  # not before: a busy server may need longer to begin

        def gone() -> Fate:
            proxy.__exit__()
            return "cut"

        proxy.arm(8, gone)
        with pytest.raises(StoreUnreachable) as raised:
            store.commit([events(lease, 1, 3)])
    assert str(proxy.port) in str(raised.value)
    assert "geheim" not in str(raised.value)
    store.close()
    direct = PostgresStore(database.url)
    direct.open()
    assert direct.row(row.run).committed.position in (0, 3)
    direct.close()


def test_the_server_crashes_at_a_message_and_everything_is_there_once(database):
    """Killed as by a power switch and started again: what it had not made durable is done again."""

    def crash() -> Fate:
        server().crash()
        return "cut"

    for at in (111, 640):
        assert lived(database, at, crash)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_server_crashes_at_any_message_and_everything_is_there_once(database):
    """At each twenty-third."""

    def crash() -> Fate:
        server().crash()
        return "cut"

    assert every(database, 2, 23, crash) > 500


def killed(database: Database, at: int) -> bool:
    """Kill the process that works before its n-th message; return whether it came to that."""
    database.sql("DROP TABLE IF EXISTS bill")
    database.sql(postgres_work.TABLE)
    with Proxy(database.server.port) as proxy:
        child = subprocess.Popen(
            [sys.executable, str(Path(postgres_work.__file__)), database.through(proxy.port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

        def kill() -> Fate:
            child.kill()
            child.wait(30)
            return "pass"  # what it had sent arrives

        proxy.arm(at, kill)
        out, errors = child.communicate(timeout=60)
    assert child.returncode in (0, -9), errors
    assert (out.splitlines()[-1:] == ["done"]) == (child.returncode == 0)
    database.wait_for_sessions_to_end()
    direct = PostgresStore(database.url)
    direct.open()
    postgres_work.is_whole(direct, out.splitlines(), database.sql("SELECT event FROM bill"))
    postgres_work.go_on(direct)
    direct.close()
    database.sql("TRUNCATE reattach_runs, reattach_batches, reattach_marks, reattach_gaps, reattach_leases")
    return child.returncode != 0


def test_killed_at_a_message_the_journal_is_whole(database):
    """B74: from the first greeting on, at some; the next process goes on at once."""
    assert all(killed(database, at) for at in (300, 700))


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_killed_at_any_message_the_journal_is_whole(database):
    """B74: at each thirteenth."""
    assert any(not killed(database, at) for at in range(2, 2000, 13))
