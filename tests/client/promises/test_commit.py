"""Promise 2: commit before render. What is shown is a fold of the journal."""

import json
import sqlite3

import pytest

from client_stage import collected, in_memory, sequences
from reattach import errors
from reattach.core.fold import Fold
from reattach.profiles import Native
from reattach.stores import MemoryStore
from reattach.stores.base import StoreFailed
from reattach.testing import FailingStore, Leg

pytestmark = pytest.mark.anyio


async def test_what_is_shown_is_on_disk(face, live, journal):
    """Read by another connection at the moment at which each event is handed out."""
    async with face.client(live.url, journal) as client:
        run = await client.start({"scenario": "words"}, key=f"disk-{face.name}")
        other = sqlite3.connect(journal)
        async for event in run:
            (found,) = other.execute("SELECT data FROM reattach_events WHERE cursor = ?", (event.cursor,)).fetchall()
            assert json.loads(found[0]) == event.data
        other.close()


async def test_nothing_is_shown_that_could_not_be_written(face):
    """The second commit finds the disk full: what was committed is shown, then CommitFailed, then it goes on without a hole."""
    _, args = in_memory(legs=[Leg(read=200)], inline=True)  # a thread may make two commits one
    store = FailingStore(MemoryStore())
    store.fail("commit", at=2)
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        first = []
        with pytest.raises(errors.CommitFailed, match="no space left on device") as caught:
            await collected(run, into=first)
        committed = len(store.inner.read(1, 0, 100))
        assert len(first) == committed
        assert caught.value.cursor == (first[-1].cursor if first else None)
        assert "Nothing that is not on disk was shown" in str(caught.value)
        rest = await collected(run)
    assert sequences(first + rest) == [1, 2, 3, 4, 5]


async def test_a_disk_that_was_full_leaves_nobody_busy_with_himself(face):
    """Neither commit nor giving the leases back finds room; with room again the loop goes on at once, as the error says."""
    _, args = in_memory(jumps=False)  # time stands: no lease runs out
    store = FailingStore(MemoryStore())
    store.fail("commit", times=None)
    store.fail("release", times=None)
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        for _ in range(2):
            with pytest.raises(errors.CommitFailed, match="no space left on device"):
                await collected(run)
        store.heal()
        assert sequences(await collected(run)) == [1, 2, 3, 4, 5]
        assert store.holder(1, "main") is None
        assert store.holder(1, "") is None


async def test_an_event_waits_for_its_commit(face):
    """The event is there, the disk is slow: it is not handed out before the commit has returned."""
    _, args = in_memory()
    store = FailingStore(MemoryStore())
    gate = store.lag("commit")
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        reader = face.beside(lambda: collected(run))
        await face.until(gate.reached.is_set)
        assert not reader.done
        assert store.inner.read(1, 0, 10) == []
        gate.open()
        assert sequences(await reader.result()) == [1, 2, 3, 4, 5]


async def test_a_store_that_raises_what_it_should_not_still_gives_an_error_of_ours(face):
    _, args = in_memory()
    store = FailingStore(MemoryStore())
    store.fail("commit", ZeroDivisionError("a bug"))
    async with face.client(journal=store, **args) as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.ReattachError):
            await collected(run)


@pytest.mark.parametrize("method", ["intend", "adopt", "row", "applied", "lease", "newest", "hand_out"])
async def test_whatever_the_journal_refuses_has_a_name(face, method):
    """Also the calls around the loop, and the next try goes on."""
    server, args = in_memory()
    server.create()
    store = FailingStore(MemoryStore())
    store.fail(method, StoreFailed("input/output error"))
    async with face.client(journal=store, **args) as client:

        async def work():
            run = await client.start("work", key="k") if method == "intend" else client.attach("run_1")
            await collected(run)
            await run.wait()

        with pytest.raises(errors.StoreError, match="input/output error"):
            await work()
        await work()


async def test_a_loop_that_could_not_begin_leaves_no_lease_behind(face):
    """The journal fails after the lease was taken: the next try is not busy with ourselves."""
    server, args = in_memory()
    server.create()
    store = FailingStore(MemoryStore())
    store.fail("applied")
    async with face.client(journal=store, **args) as client:
        run = client.attach("run_1")
        with pytest.raises(errors.CommitFailed):
            await collected(run)
        assert store.holder(1, "main") is None
        assert (await collected(run))[-1].settles


async def test_the_view_is_the_fold_of_the_journal_and_equals_the_texts(face, live, journal):
    async with face.client(live.url, journal) as client:
        run = await client.start({"scenario": "words"}, key=f"view-{face.name}")
        events = await collected(run)
        view = await run.view()
        assert view.text == "".join(event.text for event in events)
        fold = Fold(run.id)
        for event in events:
            fold.add(event, Native().changes(event))
        assert fold.view().messages == view.messages
        assert view.status == "completed"
        assert [(tool.name, tool.result, tool.complete) for tool in view.tools] == [("charge", {"cents": 999}, True)]
