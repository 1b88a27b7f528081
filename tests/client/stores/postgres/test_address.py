"""Addresses: passwords are in no text, and what cannot be reached is named."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from postgres_stage import Database
from reattach.runtime.failures import of_fault
from reattach.stores.base import StoreFailed, StoreUnreachable
from reattach.stores.postgres import PostgresStore, session
from reattach.stores.postgres.address import scrubbed, shown


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://u:p@h:1/db", "postgresql://u@h:1/db"),
        ("postgres://u@h/db", "postgres://u@h/db"),
        ("postgresql://u:p%40q@a:1,b:2/db?sslmode=require", "postgresql://u@a:1,b:2/db?sslmode=require"),
        ("postgresql:///db?user=u&password=p&host=/run", "postgresql:///db?user=u&host=%2Frun"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
    ],
)
def test_a_journals_name_is_its_address_without_the_password(url, name):
    assert shown(url) == name
    assert PostgresStore(url).name == name


def test_a_message_that_repeats_the_password_is_scrubbed():
    url = "postgresql://u:gehe%20im@h/db?sslpassword=auch"
    assert scrubbed("bad: gehe%20im, gehe im, auch", url) == "bad: ***, ***, ***"


def wrong(url: str) -> str:
    """Return what a person reads when the journal cannot be opened."""
    store = PostgresStore(url)
    with pytest.raises(StoreUnreachable) as raised:
        store.open()
    store.close()
    text = str(of_fault(raised.value, store.name))
    assert "geheim" not in text
    assert "falsch" not in text
    return text


def test_a_server_that_is_not_there_is_named():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = wrong(f"postgresql://u:geheim@127.0.0.1:{port}/postgres")
    assert f"postgresql://u@127.0.0.1:{port}/postgres could not be reached" in text
    assert "refused" in text


def test_a_server_that_sleeps_is_named_in_bounded_time(monkeypatch):
    """It takes the connection and says nothing."""
    monkeypatch.setitem(session._DEFAULTS, "connect_timeout", 2)
    with socket.create_server(("127.0.0.1", 0)) as sleeping:
        port = sleeping.getsockname()[1]
        assert f"127.0.0.1:{port}" in wrong(f"postgresql://u:geheim@127.0.0.1:{port}/postgres")


def test_a_wrong_password_is_said_without_it(database: Database):
    assert "password authentication failed" in wrong(database.server.url(password="falsch"))


def test_a_database_that_is_not_there_is_said(database: Database):
    assert "nowhere" in wrong(database.server.url().replace("/postgres?", "/nowhere?"))


def test_a_database_of_another_encoding_is_refused(database: Database):
    database.sql("CREATE DATABASE narrow ENCODING 'LATIN1' TEMPLATE template0")
    try:
        store = PostgresStore(database.server.url().replace("/postgres?", "/narrow?"))
        with pytest.raises(StoreFailed, match="UTF8"):
            store.open()
        store.close()
    finally:
        database.wait_for_sessions_to_end()
        database.sql("DROP DATABASE narrow")


def test_without_psycopg_the_line_to_install_it_is_given():
    program = """
import sys
sys.modules["psycopg"] = None
import reattach
try:
    reattach.Client("http://127.0.0.1:1", "postgresql://u:geheim@h/db")
except reattach.UsageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "pip install 'reattach[postgres]'" in done.stdout
    assert "geheim" not in done.stdout
