"""The command line on a journal in PostgreSQL: `--journal postgresql://…`, and no password in what it prints."""

from __future__ import annotations

import json

from postgres_stage import database
from reattach.cli import main
from reattach.stores.postgres import PostgresStore
from reattach.testing.stores import begun, events

__all__ = ["database"]


def test_a_journal_in_postgresql_is_shown_exported_and_pruned(database, capsys):
    """Its file is not looked for, and its address is printed without the password."""
    store = PostgresStore(database.url)
    store.open()
    _, lease, _ = begun(store, "run_1")
    store.commit([events(lease, 1, 3)])
    store.close()
    assert main(["journal", "show", "run_1", "--journal", database.url]) == 0
    assert "word 3" in capsys.readouterr().out
    assert main(["journal", "export", "run_1", "--journal", database.url]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["journal", "prune", "--older-than", "30d", "--journal", database.url, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == 0
    assert told["journal"] == store.name
    assert "geheim" not in str(told)


def test_checking_a_database_is_declined_in_words(database, capsys):
    assert main(["journal", "check", "--journal", database.url]) == 64
    told = capsys.readouterr()
    assert "its server keeps what it holds whole" in told.err
    assert "geheim" not in told.out + told.err


def test_a_database_that_is_away_is_told_without_its_password(capsys):
    assert main(["runs", "--journal", "postgresql://me:geheim@127.0.0.1:9/runs"]) == 3
    told = capsys.readouterr()
    assert "postgresql://me@127.0.0.1:9/runs" in told.err
    assert "geheim" not in told.out + told.err
