"""Promises 1 and 4, retention: events go, what a key means never does; nothing goes that somebody has not confirmed."""

import os
import sqlite3
import threading

import pytest

from client_stage import collected, in_memory, sequences
from reattach import errors
from reattach.stores import MemoryStore, SqliteStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def server_and_args():
    return in_memory()


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path, server_and_args):
    """A journal on the clock that the client has."""
    wall = server_and_args[1]["_seams"].clock().time
    return MemoryStore(wall=wall) if request.param == "memory" else SqliteStore(tmp_path / "runs.db", wall=wall)


async def followed(client, key="k"):
    run = await client.start("work", key=key)
    await collected(run)
    return run


async def test_pruning_keeps_key_id_digest_and_outcome(face, store, server_and_args):
    """Promise 1: starting again is still attaching, asks nobody, and has the result; other input is still a conflict."""
    server, args = server_and_args
    async with face.client(journal=store, **args) as client:
        run = await followed(client)
        before = store.row(1)
        assert await client.prune(older_than=0) == 1
        row = store.row(1)
        assert row._replace(updated_at=before.updated_at) == before
        asked = len(server.wire.requests)
        again = await client.start("work", key="k")
        assert (again.id, await again.result(), again.needs) == (run.id, "ok", "nothing")
        assert await collected(again) == []
        assert len(server.wire.requests) == asked
        with pytest.raises(errors.KeyConflict):
            await client.start("other work", key="k")


async def test_what_was_pruned_is_a_gap_and_never_an_empty_run(face, store, server_and_args):
    """Promise 8: for who reads it again, for a new consumer, and in the view."""
    _, args = server_and_args
    async with face.client(journal=store, **args) as client:
        run = await followed(client)
        await client.prune(older_than=0)
        for reader in (client.attach(run.id, after="beginning"), client.attach(run.id, consumer="late")):
            (event,) = await collected(reader)
            assert (event.kind, event.gap.missing, event.gap.reason) == ("gap", 5, "expired")
            assert str(event.gap) == "5 events are missing: they are no longer kept"
        view = await client.attach(run.id).view()
        assert (view.text, len(view.gaps), view.status) == ("", 1, "completed")
        assert await client.prune(older_than=0) == 0, "there is nothing left to remove"


async def test_a_run_that_goes_on_is_not_pruned(face):
    _, args = in_memory()
    store = MemoryStore(wall=args["_seams"].clock().time)
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        await collected(run, 1)
        store._logs[1].row = store.row(1)._replace(outcome=None, settled_at=None)
        assert await client.prune(older_than=0) == 0


async def test_a_run_that_was_not_read_to_its_end_keeps_its_events(face, store, server_and_args):
    """Promise 4: they are still to be delivered."""
    _, args = server_and_args
    async with face.client(journal=store, **args) as client:
        async with await client.start("work", key="k") as run:
            await collected(run, 2)
        for view in [await run.wait()]:
            assert view.status == "completed"
        assert await client.prune(older_than=0) == 0
        assert sequences(await collected(run)) == [3, 4, 5]
        assert await client.prune(older_than=0) == 1


async def test_one_consumer_that_is_behind_keeps_the_events_for_itself(face, store, server_and_args):
    """Promise 4: also one that confirmed nothing yet, while another did, and although the outcome was handed out."""
    _, args = server_and_args
    async with face.client(journal=store, **args) as client:
        run = await followed(client)
        await run.wait()
        billing = client.attach(run.id, consumer="billing")
        await collected(billing, 1)
        await billing.detach()
        assert await client.prune(older_than=0) == 0
        assert len(await collected(billing)) == 5
        assert await client.prune(older_than=0) == 1


async def test_a_run_that_was_only_waited_for_counts_as_applied(face, store, server_and_args):
    """Promise 1: its outcome was handed out, and nobody ever confirmed an event."""
    _, args = server_and_args
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        await run.wait()
        assert await client.prune(older_than=0) == 1


async def test_only_what_ended_long_enough_ago_goes(face):
    """The age of a run is counted from its end."""
    _, args = in_memory(inline=True, jumps=False)
    now = args["_seams"].clock().time
    ages = [100.0]
    store = MemoryStore(wall=lambda: now() - ages[-1])
    async with face.client(journal=store, **args) as client:
        await followed(client, "old")
        ages.append(10.0)
        await followed(client, "new")
        assert await client.prune(older_than=50) == 1
        assert ["gap" in store.read(run, 0, 1)[0].element for run in (1, 2)] == [True, False]


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "30d", None, True])
async def test_an_age_that_is_none_is_refused(face, wrong):
    _, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        with pytest.raises(errors.UsageError, match="seconds since the end of a run"):
            await client.prune(older_than=wrong)


async def test_another_servers_runs_are_left_alone(face, store, server_and_args):
    """`Client.prune` is of this server, as `Client.runs` is."""
    _, args = server_and_args
    async with face.client(journal=store, **args) as client:
        await followed(client)
        other = store.adopt("http://elsewhere.example", "native", "run_9")
        assert await client.prune(older_than=0) == 1
        assert store.row(other.run).outcome is None


def size(path):
    return os.stat(path).st_size


async def test_the_file_really_shrinks(face, journal):
    """Not only its rows: what they took is given back."""
    _, args = in_memory(2_000)
    store = SqliteStore(journal, wall=args["_seams"].clock().time)
    async with face.client(journal=store, **args) as client:
        await followed(client)
    before = size(journal)
    async with face.client(journal=store, **args) as client:
        assert await client.prune(older_than=0) == 1
    after = size(journal)
    assert before > 300_000
    assert after < before / 3, (before, after)
    connection = sqlite3.connect(journal)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


@pytest.mark.slow
async def test_others_write_while_a_journal_is_pruned(face, tmp_path):
    """Pruning is steps: between two of them another process's commit gets its turn."""
    path = tmp_path / "runs.db"
    _, args = in_memory(10)
    store = SqliteStore(path, wall=args["_seams"].clock().time)
    async with face.client(journal=store, **args) as client:
        for number in range(20):
            await followed(client, f"k{number}")
        other = SqliteStore(path)
        other.open()
        written: list[int] = []
        over = threading.Event()

        def write() -> None:
            while not over.is_set() and len(written) < 10_000:
                written.append(other.adopt("http://elsewhere.example", "native", f"run_{len(written)}").run)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            assert await client.prune(older_than=0) == 20
        finally:
            over.set()
            thread.join(30)
            other.close()
        assert written
