"""Promise 1: a run id that no server knows leaves nothing behind; what was ever known to be a run is never forgotten."""

import pytest

from client_stage import collected, in_memory, sequences
from reattach import errors
from reattach.stores import MemoryStore

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("ask", ["loop", "wait", "status", "cancel"])
async def test_a_mistyped_id_is_not_listed_for_ever(face, ask):
    """Promise 1: NotFound says so, and the journal is as it was: nothing is unfinished that never was."""
    _, args = in_memory(jumps=False)
    async with face.client(journal=":memory:", **args) as client:
        run = client.attach("typo")
        for _ in range(2):
            with pytest.raises(errors.NotFound):
                await (collected(run) if ask == "loop" else getattr(run, ask)())
            assert await client.runs() == []


async def test_a_view_of_a_mistyped_id_leaves_nothing_either(face):
    _, args = in_memory()
    store = MemoryStore()
    async with face.client(journal=store, **args) as client:
        with pytest.raises(errors.NotFound):
            async for _ in client.attach("typo").views():
                pass
        await face.until(lambda: store.rows() == [])


async def test_an_id_that_comes_to_be_is_followed_by_the_same_handle(face):
    """Promise 1: it was asked for too early; the row is made again, and all of its events come."""
    _, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        run = client.attach("run_1")
        with pytest.raises(errors.NotFound):
            await collected(run)
        started = await client.start("work", key="k")
        assert started.id == "run_1"
        assert sequences(await collected(run)) == [1, 2, 3, 4, 5]
        assert [(each.id, each.key) for each in await client.runs()] == [("run_1", "k")]


@pytest.mark.parametrize("known_by", ["its key", "an event"])
async def test_a_run_that_was_known_is_not_forgotten(face, known_by):
    """Promise 1: its server lost it, or is the wrong one; that needs a person, who finds it listed."""
    server, args = in_memory()
    store = MemoryStore()
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        if known_by == "an event":
            await collected(run, 1)
            await run.detach()
            store._logs[1].row = store.row(1)._replace(key=None, outcome=None, status="unknown", settled_at=None)
        server.runs.clear()
        with pytest.raises(errors.NotFound):
            await client.attach(run.id).status()
        assert [each.needs for each in await client.runs(unfinished=True)] == ["follow"]
