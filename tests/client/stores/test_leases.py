"""Telling one process from every other, and a dead holder from a living one."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest

from reattach.stores import leases
from reattach.stores.base import Busy, Holder, Lease
from reattach.stores.jsonl import JsonlStore
from reattach.stores.leases import current_holder, holder_json, holder_of, is_alive, taken
from reattach.stores.memory import MemoryStore
from reattach.stores.sqlite import SqliteStore
from reattach.testing.stores import PROFILE, SERVER

US = current_holder("client-1")


def test_a_holder_names_this_process():
    assert (US.pid, US.client) == (os.getpid(), "client-1")
    assert US.started
    assert current_holder("client-1") == US


def test_a_holder_comes_back_from_its_text():
    assert holder_of(holder_json(US)) == US


def test_two_processes_are_two_holders():
    program = 'from reattach.stores.leases import *; print(holder_json(current_holder("client-1")))'
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    other = holder_of(told.stdout)
    assert (other.host, other.boot, other.client) == (US.host, US.boot, US.client)
    assert (other.pid, other.started) != (US.pid, US.started)
    assert is_alive(other) is False


@pytest.mark.parametrize(
    ("holder", "alive"),
    [
        (US, True),
        (US._replace(client="client-2"), True),
        (US._replace(started="1"), False),
        (US._replace(pid=2**22 + 1), False),
        (US._replace(boot="of yesterday"), False),
        (US._replace(host="another.example"), None),
        (US._replace(boot=f"{US.boot.partition('/')[0]}/pid:[1]"), None),
    ],
    ids=[
        "itself",
        "other client",
        "number given anew",
        "no such process",
        "other boot",
        "other host",
        "other container",
    ],
)
def test_who_lives(holder: Holder, alive: bool | None):
    """None where nobody here can know: then its time decides."""
    assert is_alive(holder) is alive


def test_a_living_process_lives_and_a_dead_one_does_not():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        child = US._replace(pid=process.pid, started=leases._started(process.pid) or "")
        assert is_alive(child)
        process.communicate(b"\n")
    assert is_alive(child) is False


def test_a_system_without_proc_is_asked_by_ps(monkeypatch, tmp_path):
    """Where start times come in other words: as long as they are the same words each time."""
    monkeypatch.setattr(leases, "_PROC", tmp_path)
    shown = {"7": "Sun Nov 29 18:46:00 2026\n"}

    def ps(arguments, **_):
        return subprocess.CompletedProcess(arguments, 0, stdout=shown.get(arguments[-1], ""))

    monkeypatch.setattr(subprocess, "run", ps)
    monkeypatch.setattr(os, "getpid", lambda: 7)
    there = current_holder("c")
    assert (there.boot, there.started) == ("", "Sun Nov 29 18:46:00 2026")
    assert is_alive(there)
    assert is_alive(there._replace(pid=8)) is False
    assert is_alive(there._replace(started="Sun Nov 29 18:46:01 2026")) is False


@pytest.mark.parametrize(
    ("alive", "now", "held"), [(True, 99.9, True), (None, 99.9, True), (False, 99.9, False), (True, 100.0, False)]
)
def test_a_lease_ends_with_its_holder_or_its_time(alive, now, held):
    assert taken(US, 100.0, now, lambda _: alive) is held


@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonl"])
def test_the_time_is_the_wall_clocks(kind, tmp_path):
    """15 s are the caller's; a renewed lease ends 15 s after that."""
    now = [1_800_000_000.0]
    settings = {"wall": lambda: now[0], "alive": lambda _: None}
    make = {"memory": MemoryStore, "sqlite": partial(SqliteStore, tmp_path / "runs.db")}
    store = make.get(kind, partial(JsonlStore, tmp_path / "runs.jsonl"))(**settings)
    store.open()
    run = store.adopt(SERVER, PROFILE, "run_1").run
    lease = store.lease(run, "", US, 15.0)
    assert isinstance(lease, Lease)
    now[0] += 10
    assert store.renew([lease], 15.0) == []
    now[0] += 14.9
    busy = store.lease(run, "", current_holder("next"), 15.0)
    assert isinstance(busy, Busy)
    assert busy.since.timestamp() == 1_800_000_000.0
    now[0] += 0.2
    assert isinstance(store.lease(run, "", current_holder("next"), 15.0), Lease)
    assert store.renew([lease], 15.0) == [lease]
    store.close()


def test_a_holder_that_we_did_not_write_is_nobody(tmp_path):
    """Nobody whom one could ask is no reason to wait for ever."""
    store = SqliteStore(tmp_path / "runs.db")
    store.open()
    run = store.adopt(SERVER, PROFILE, "run_1").run
    store.lease(run, "", US, 15.0)
    store._writer.execute("UPDATE reattach_leases SET holder = 'me'")
    assert isinstance(store.lease(run, "", US, 15.0), Lease)
    store.close()
