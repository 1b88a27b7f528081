"""Promise 4: applied <= delivered <= committed. What was confirmed never comes again, what was not comes first, marked."""

import sqlite3

import pytest

from client_stage import Facts, collected, in_memory, sequences
from reattach import errors
from reattach.stores import MemoryStore
from reattach.stores.base import Lease
from reattach.stores.leases import current_holder
from reattach.testing import MemoryServer, Seams, VirtualClock
from reattach.testing.memory_server import URL

pytestmark = pytest.mark.anyio


def applied(journal):
    with sqlite3.connect(journal) as connection:
        found = connection.execute("SELECT applied FROM reattach_marks WHERE consumer = 'main'").fetchall()
    connection.close()
    return found[0][0] if found else 0


async def test_a_with_that_is_left_normally_confirms_the_event_in_hand(face, journal):
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        assert sequences(await collected(run, 3)) == [1, 2, 3]
    assert applied(journal) == 3
    async with face.client(journal=journal, **args) as client:
        rest = await collected(await client.start("work", key="k"))
    assert sequences(rest) == [4, 5]


async def test_a_runs_own_with_confirms_too(face, journal):
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        async with await client.start("work", key="k") as run:
            await collected(run, 2)
        assert applied(journal) == 2
        assert sequences(await collected(run)) == [3, 4, 5]


async def test_an_error_in_the_loop_passes_and_the_event_comes_first_next_time_marked(face, journal):
    _, args = in_memory()

    async def work():
        async with face.client(journal=journal, **args) as client:
            async for event in await client.start("work", key="k"):
                if event.sequence == 2:
                    raise LookupError("the handler's own")

    with pytest.raises(LookupError, match="the handler's own"):
        await work()
    async with face.client(journal=journal, **args) as client:
        events = await collected(await client.start("work", key="k"))
    assert sequences(events) == [2, 3, 4, 5]
    assert events[0].redelivered


async def test_a_break_leaves_the_event_in_hand_unconfirmed(face):
    """The loop entered again begins with it, marked; the connection was kept."""
    server, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        assert sequences(await collected(run, 2)) == [1, 2]
        again = await collected(run)
        assert sequences(again) == [2, 3, 4, 5]
        assert [event.redelivered for event in again] == [True, False, False, False]
    assert len(server.wire.attaches()) == 1


async def test_what_this_client_never_handed_out_is_not_marked(face):
    """Detached and read again by the same client: committed is not shown."""
    _, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        await run.wait()
        async with run:
            first = await collected(run, 1)
        rest = await collected(run)
    assert sequences(first + rest) == [1, 2, 3, 4, 5]
    assert not any(event.redelivered for event in first + rest)


async def test_ack_is_durable_when_it_returns(face, journal):
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        async for event in run:
            await run.ack()
            assert applied(journal) == event.sequence


async def test_ack_takes_an_event_of_this_loop_and_confirms_all_up_to_it(face, journal):
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        events = await collected(run, 3)
        await run.ack(events[2])
        assert applied(journal) == 3
        with pytest.raises(errors.UsageError, match="no event is in hand"):
            await run.ack()
        assert sequences(await collected(run)) == [4, 5]


async def test_ack_of_what_was_not_handed_out_is_refused(face):
    _, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.UsageError, match="nothing to confirm"):
            await run.ack()
        everything = await collected(client.attach(run.id, after="beginning"))
        await collected(run, 1)
        with pytest.raises(errors.UsageError, match="was not handed out"):
            await run.ack(everything[3])


async def test_iterating_after_the_end_is_empty_at_once_and_asks_nobody(face):
    server, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        assert len(await collected(run)) == 5
        before = len(server.wire.requests)
        assert await collected(run) == []
        assert len(server.wire.requests) == before
        everything = await collected(client.attach(run.id, after="beginning"))
        assert sequences(everything) == [1, 2, 3, 4, 5]
        assert not any(event.redelivered for event in everything)
        assert len(server.wire.requests) == before


async def test_after_a_cursor_only_what_lies_behind_it_comes_and_no_mark_moves(face, journal):
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        assert sequences(await collected(client.attach(run.id, after="e1.3"))) == [4, 5]
        assert applied(journal) == 0
        with pytest.raises(errors.UsageError, match="no cursor of this server"):
            await collected(client.attach(run.id, after="e1.-3"))


async def test_after_the_tail_only_what_comes_from_now_on(face, live, journal):
    """Beside it the run's own consumer sees everything."""
    async with face.client(live.url, journal) as client:
        run = await client.start({"scenario": "words"}, key=f"tail-{face.name}")
        await run.wait()
        assert await collected(client.attach(run.id, after="tail")) == []
        assert len(await collected(run)) > 5


async def test_wait_result_and_views_confirm_nothing_but_a_run_only_waited_for_needs_nothing(face, journal):
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        assert run.needs == "follow"
        async for _ in run.views(interval=0.001):
            pass
        assert (await client.runs())[0].needs == "follow"
        assert await run.result() == "ok"
        assert (await client.runs())[0].needs == "nothing"
        assert run.needs == "nothing"
        assert applied(journal) == 0


async def test_a_reader_that_was_taken_over_confirms_nothing_more(face):
    """The lease ran out while the process was paused, and another has the run: LeaseLost, and the mark is the other's."""
    clock, facts = VirtualClock(), Facts()
    server = MemoryServer(clock)
    server.create()
    for _ in range(3):
        server.run.append()
    store = MemoryStore(wall=clock.time, alive=lambda holder: None)
    other = current_holder("other")._replace(host="elsewhere")
    async with face.client(
        URL, store, transport=server.wire, observer=facts, _seams=Seams(clock=lambda: clock)
    ) as client:
        run = client.attach("run_1")
        assert sequences(await collected(run, 2)) == [1, 2]
        clock._now += 20  # a pause of the whole process: nothing was renewed
        assert isinstance(store.lease(1, "main", other, 1e9), Lease)
        if face.name == "blocking":
            clock.advance(6)
        else:
            await clock.elapse(6)
        await face.until(lambda: facts.count("lease"))
        with pytest.raises(errors.LeaseLost, match="not confirmed"):
            await anext(run)
        with pytest.raises(errors.RunBusy, match="on elsewhere since"):
            await collected(run)
    assert store.applied(1, "main") == 1
