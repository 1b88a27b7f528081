"""Promise 4, keep="cursor": both marks are on disk and no payload; what was not confirmed comes from the server again, marked."""

import asyncio
import sqlite3

import pytest

from client_stage import collected, in_memory, sequences
from reattach import Policy, errors, profiles
from reattach.runtime import places
from reattach.stores import MemoryStore, SqliteStore
from reattach.stores.leases import current_holder
from reattach.testing import Beat

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "runs.db")


def cursors(server):
    """What the server was asked after, attach by attach."""
    return [sent.after for sent in server.wire.attaches()]


async def test_every_event_comes_once_and_none_of_it_is_on_disk(face, journal):
    """Promise 4: the run is followed to its end; the file never held a word of it."""
    server, args = in_memory(6)
    async with face.client(journal=journal, keep="cursor", **args) as client:
        events = await collected(await client.start("work", key="k"))
    assert sequences(events) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [event.text for event in events if event.text] == [f"word {number} " for number in range(1, 7)]
    assert not any(event.redelivered for event in events)
    for file in journal.parent.iterdir():
        assert b"word" not in file.read_bytes(), file.name
    assert len(cursors(server)) == 1


async def test_the_server_is_asked_after_the_applied_event(face, store):
    """Promise 4: what comes up to the committed one is marked, and then what is new is not."""
    server, args = in_memory(
        6, story=[*[Beat(data={"text": "x"})] * 4, Beat(after=5, data={"text": "y"}), Beat(do="end")]
    )
    async with face.client(journal=store, keep="cursor", **args) as client, await client.start("work", key="k") as run:
        await collected(run, 2)
    committed = store.row(1).committed.position if isinstance(store, MemoryStore) else None
    async with face.client(journal=store, keep="cursor", **args) as client:
        events = await collected(await client.start("work", key="k"))
        assert await client.runs(unfinished=True) == []
    assert cursors(server) == [None, "e1.2"]
    assert sequences(events) == [3, 4, 5, 6, 7][: len(events)]
    marked = [event.redelivered for event in events]
    assert marked == sorted(marked, reverse=True)
    if committed is not None:
        assert sum(marked) == committed - 2


async def test_what_was_handed_out_and_not_confirmed_comes_again_marked(face, store):
    """Promise 4: the event in hand, after an error in the loop."""
    server, args = in_memory()
    async with face.client(journal=store, keep="cursor", **args) as client:
        run = await client.start("work", key="k")
        await collected(run, 3)
        await run.detach()
    async with face.client(journal=store, keep="cursor", **args) as client:
        events = await collected(await client.start("work", key="k"))
    assert sequences(events) == [3, 4, 5]
    assert events[0].redelivered
    assert cursors(server) == [None, "e1.2"]


async def test_a_loop_entered_again_begins_behind_the_last_confirmed_without_the_network(face):
    """Promise 4: memory still has what was not confirmed."""
    server, args = in_memory()
    async with face.client(journal=":memory:", keep="cursor", **args) as client:
        run = await client.start("work", key="k")
        assert sequences(await collected(run, 2)) == [1, 2]
        again = await collected(run)
    assert sequences(again) == [2, 3, 4, 5]
    assert [event.redelivered for event in again] == [True, False, False, False]
    assert len(cursors(server)) == 1


async def test_a_slow_handler_parks_the_connection_and_loses_nothing(face):
    """Architecture: only memory holds what it has not read, so the network is not read on; then it is, after the cursor."""
    story = [*[Beat(after=0.01, data={"text": f"{number} "}) for number in range(40)], Beat(after=0.01, do="end")]
    server, args = in_memory(story=story)
    policy = Policy(max_buffered_events=4)
    async with face.client(journal=":memory:", keep="cursor", policy=policy, **args) as client:
        run = await client.start("work", key="k")
        events = []
        async for event in run:
            events.append(event)
            await face.until(lambda: True)
            if len(events) == 1:
                await face.until(lambda: run.connection.phase != "live" or len(server.run.log) > 30)
    assert sequences(events) == list(range(1, len(server.run.log) + 1))
    assert not any(event.redelivered for event in events)


async def test_wait_beside_a_loop_that_stands_still_comes_to_the_end(face):
    """Promise 4: who waits does not wait for the handler; the handler then gets the rest from the server."""
    story = [*[Beat(data={"text": f"{number} "}) for number in range(30)], Beat(do="end", data="ok")]
    server, args = in_memory(story=story)
    policy = Policy(max_buffered_events=4)
    async with face.client(journal=":memory:", keep="cursor", policy=policy, **args) as client:
        run = await client.start("work", key="k")
        await collected(run, 1)
        assert await asyncio.wait_for(run.result(), 20) == "ok"
        assert sequences(await collected(run)) == list(range(1, len(server.run.log) + 1))


async def test_there_is_no_view_of_a_journal_without_events(face, store):
    """Promise 4: UsageError, saying what to use instead; also for a client that keeps events, on this run."""
    _, args = in_memory()
    async with face.client(journal=store, keep="cursor", **args) as client:
        run = await client.start("work", key="k")
        await collected(run)
        with pytest.raises(errors.UsageError, match=r"keeps only the cursor.*views\(\)"):
            await run.view()
    async with face.client(journal=store, **args) as client:
        with pytest.raises(errors.UsageError, match="keeps only the cursor"):
            await client.attach(run.id).view()


async def test_a_run_that_was_killed_while_its_end_came_again_is_followed_to_it(face, store):
    """Promise 4: the journal knows the outcome and stands at the applied mark; what is behind it was never confirmed."""
    _, args = in_memory()
    async with face.client(journal=store, keep="cursor", **args) as client:
        run = await client.start("work", key="k")
        await collected(run, 2)
        await run.wait()
        await run.detach()
        lease = store.lease(1, "", current_holder("killed"), 0.0)
        store.rewind(lease, places.applied_mark(store, profiles.Native(), store.row(1)))
        assert store.row(1).committed.position == store.applied(1, "main") == 1
    async with face.client(journal=store, keep="cursor", **args) as client:
        assert [each.needs for each in await client.runs(unfinished=True)] == ["follow"]
        again = await collected(client.attach(run.id))
        assert [(event.sequence, event.redelivered) for event in again] == [(number, True) for number in range(2, 6)]
        assert await client.runs(unfinished=True) == []


async def test_a_consumer_that_is_refused_leaves_no_mark_that_the_run_would_wait_for(face, store):
    """Promise 1: the run is applied to its end by the one consumer that it can have."""
    _, args = in_memory()
    async with face.client(journal=store, keep="cursor", **args) as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.UsageError, match="the consumer 'main' alone"):
            await collected(client.attach(run.id, consumer="billing"))
        await collected(run)
        assert list(store.consumers(1)) == ["main"]
        assert await client.runs(unfinished=True) == []


@pytest.mark.parametrize("beside", [{"consumer": "billing"}, {"after": "beginning"}, {"after": "tail"}])
async def test_there_is_one_consumer_and_nothing_to_read_again(face, store, beside):
    """Promise 4: a UsageError, and the follower goes on."""
    _, args = in_memory()
    async with face.client(journal=store, keep="cursor", **args) as client:
        run = await client.start("work", key="k")
        await collected(run, 1)
        with pytest.raises(errors.UsageError, match="the consumer 'main' alone"):
            await collected(client.attach(run.id, **beside))
        assert sequences(await collected(run)) == [1, 2, 3, 4, 5]


async def test_views_begin_with_the_servers_snapshot(face, live, journal):
    """Promise 4: and grow by the events that come, each once; the last view is the whole truth, and no gap is in it."""
    async with face.client(live.url, journal) as client:
        whole = await client.start({"scenario": "words"}, key=f"views-{face.name}")
        await whole.wait()
        expected = await whole.view()
    async with face.client(live.url, journal.with_name("bare.db"), keep="cursor") as client:
        last = None
        async for view in client.attach(whole.id).views(interval=0.001):
            last = view
    assert (last.messages, last.tools, last.status, last.gaps) == (
        expected.messages,
        expected.tools,
        expected.status,
        (),
    )


async def test_result_and_a_second_start_ask_nobody_once_the_end_is_known(face, store):
    """Promise 7: a journal that holds the end needs no network, also without the events."""
    server, args = in_memory()
    async with face.client(journal=store, keep="cursor", **args) as client:
        run = await client.start("work", key="k")
        assert await run.result() == "ok"
        before = len(server.wire.requests)
        again = await client.start("work", key="k")
        assert (await again.result(), again.needs) == ("ok", "nothing")
        assert len(server.wire.requests) == before


async def test_a_replaced_log_is_noticed_from_the_beginning_on(face):
    """Promise 8: nothing was confirmed, and yet the epoch that was followed is known."""
    server, args = in_memory(3)
    store = MemoryStore()
    async with face.client(journal=store, keep="cursor", **args) as client:
        run = await client.start("work", key="k")
        await collected(run, 1)
        await run.detach()
    server.run.rotate(0)
    async with face.client(journal=store, keep="cursor", **args) as client:
        with pytest.raises(errors.EpochChanged):
            await collected(await client.start("work", key="k"))


async def test_acks_of_many_events_at_once_hold_what_is_not_acked(face, journal):
    """Promise 4: ack="manual" with keep="cursor"."""
    server, args = in_memory(6)
    async with face.client(journal=journal, keep="cursor", **args) as client:
        run = client.attach((await client.start("work", key="k")).id, ack="manual")
        events = await collected(run, 5)
        await run.ack(events[2])
    async with face.client(journal=journal, keep="cursor", **args) as client:
        again = await collected(client.attach(run.id, ack="manual"))
    assert sequences(again) == [4, 5, 6, 7, 8]
    assert cursors(server)[-1] == "e1.3"


async def test_a_transaction_moves_the_place_that_is_asked_after(face, journal):
    """Promise 4: exactly once, without a copy of the log."""
    server, args = in_memory()
    with sqlite3.connect(journal) as connection:
        connection.execute("CREATE TABLE bill (event TEXT UNIQUE)")
    connection.close()
    async with face.client(journal=journal, keep="cursor", **args) as client:
        run = await client.start("work", key="k")
        async for event in run:
            async with run.transaction() as tx:
                await tx.execute("INSERT INTO bill VALUES (?)", (event.id,))
            if event.sequence == 2:
                break
        await run.detach()
    async with face.client(journal=journal, keep="cursor", **args) as client:
        run = await client.start("work", key="k")
        async for event in run:
            async with run.transaction() as tx:
                await tx.execute("INSERT INTO bill VALUES (?)", (event.id,))
    with sqlite3.connect(journal) as connection:
        assert len(connection.execute("SELECT event FROM bill").fetchall()) == 5
    connection.close()
    assert cursors(server) == [None, "e1.2"]
