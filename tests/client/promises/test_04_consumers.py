"""Promise 4: each consumer of a run has its own mark; none loses or doubles for another, and one connection serves them all."""

import asyncio

import pytest

from client_stage import collected, in_memory, sequences
from reattach import errors
from reattach.stores import MemoryStore, SqliteStore

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "runs.db")


async def test_every_consumer_sees_every_event_over_one_connection(face, store):
    """Promise 4: a second consumer of the same run asks the server for nothing."""
    server, args = in_memory()
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        main, billing = collected(run), collected(client.attach(run.id, consumer="billing"))
        assert sequences(await main) == sequences(await billing) == [1, 2, 3, 4, 5]
    assert len(server.wire.attaches()) == 1


async def test_consumers_side_by_side_share_the_connection(face, journal):
    """Promise 4: while one is in the middle the other reads the same subscription, and each stands where it stood."""
    server, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        billing = client.attach(run.id, consumer="billing")
        assert sequences(await collected(run, 2)) == [1, 2]
        assert sequences(await collected(billing, 4)) == [1, 2, 3, 4]
        assert sequences(await collected(run)) == [2, 3, 4, 5]
        assert sequences(await collected(billing)) == [4, 5]
    assert len(server.wire.attaches()) == 1


async def test_each_goes_on_after_its_own_mark(face, store):
    """Promise 4: what one confirmed is not confirmed for the other, also for the next client."""
    _, args = in_memory()
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        async with run:
            await collected(run, 4)
        async with client.attach(run.id, consumer="billing") as billing:
            await collected(billing, 1)
    async with face.client(journal=store, **args) as client:
        assert sequences(await collected(client.attach(run.id))) == [5]
        assert sequences(await collected(client.attach(run.id, consumer="billing"))) == [2, 3, 4, 5]
        late = await collected(client.attach(run.id, consumer="audit"))
        assert sequences(late) == [1, 2, 3, 4, 5]


async def test_the_same_consumer_twice_is_busy_and_another_is_not(face, store):
    """Promise 4: RunBusy names who has it."""
    _, args = in_memory()
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        first = client.attach(run.id, consumer="billing")
        await collected(first, 1)
        with pytest.raises(errors.RunBusy, match="as consumer 'billing' by pid"):
            await collected(client.attach(run.id, consumer="billing"))
        assert len(await collected(run)) == 5
        assert sequences(await collected(first)) == [1, 2, 3, 4, 5]


async def test_a_consumer_of_another_client_reads_the_journal(face, journal):
    """Promise 4: one network connection in all, whoever follows; the other sees what is committed, live."""
    server, args = in_memory()
    async with face.client(journal=journal, **args) as writer, face.client(journal=journal, **args) as other:
        run = await writer.start("work", key="k")
        assert sequences(await collected(run, 1)) == [1]
        billing = other.attach(run.id, consumer="billing")
        found = await asyncio.wait_for(collected(billing), 20)
        assert sequences(found) == [1, 2, 3, 4, 5]
        assert sequences(await collected(run)) == [1, 2, 3, 4, 5]
    assert len(server.wire.attaches()) == 1


async def test_an_ack_moves_the_mark_of_its_own_consumer(face, journal):
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        billing = client.attach(run.id, consumer="billing")
        await collected(run, 1)
        await collected(billing, 3)
        await billing.ack()
        assert SqliteLook(journal).marks() == {"billing": 3, "main": 0}


async def test_a_run_needs_its_application_until_every_consumer_is_at_its_end(face, store):
    """Promise 4: "main" speaks for all of them, any other for itself."""
    _, args = in_memory()
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        billing = client.attach(run.id, consumer="billing")
        await collected(billing, 1)
        await collected(run)
        assert [each.needs for each in await client.runs(unfinished=True)] == ["follow"]
        assert len(await collected(billing)) == 5
        assert await client.runs(unfinished=True) == []


async def test_a_run_that_only_another_consumer_follows_needs_nothing_at_its_end(face, store):
    """Promise 4: nobody ever was "main"; it is not waited for."""
    _, args = in_memory()
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        await collected(client.attach(run.id, consumer="billing"))
        assert await client.runs(unfinished=True) == []


class SqliteLook:
    """What another process reads in the file."""

    def __init__(self, path):
        self.store = SqliteStore(path)

    def marks(self):
        self.store.open()
        try:
            (row,) = self.store.rows()
            return self.store.consumers(row.run)
        finally:
            self.store.close()
