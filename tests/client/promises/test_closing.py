"""Promise 11: closing is clean. In any state, twice, from anywhere; who waits gets `Closed`; nothing is lost and nothing leaks."""

import asyncio
import gc
import os
import threading

import pytest

import reattach
from client_stage import Facts, collected, in_memory, sequences
from reattach import errors
from reattach.testing import Beat, Leg, Trip

pytestmark = pytest.mark.anyio

QUIET = [Beat()]


async def consume(client, run):
    return await collected(run)


async def views(client, run):
    return [view async for view in run.views(interval=0.001)]


async def wait(client, run):
    return await run.wait()


async def result(client, run):
    return await run.result(timeout=1e6)


async def cancel(client, run):
    return await run.cancel(timeout=1e6)


@pytest.mark.parametrize("blocked", [consume, views, wait, result, cancel], ids=lambda each: each.__name__)
async def test_who_is_blocked_gets_closed(face, blocked):
    """And never an end as if finished."""
    server, args = in_memory(story=QUIET, jumps=False)
    facts = Facts()
    if blocked is cancel:
        server.answer_call = unheard(server)
    async with face.client(journal=":memory:", observer=facts, **args) as client:
        run = await client.start("work", key="k")
        waiting = face.beside(lambda: blocked(client, run))
        await face.until(lambda: facts.count("committed") and len(server.wire.requests) >= 3)
        assert not waiting.done
        await client.close()
        assert isinstance(await waiting.error(), errors.Closed)
        await client.close()
        with pytest.raises(errors.Closed):
            await blocked(client, run)
        with pytest.raises(errors.Closed):
            await client.start("work", key="k2")
        with pytest.raises(errors.Closed):
            await client.runs()
    assert server.wire.open_streams == 0


def unheard(server):
    """A server that takes the wish to cancel and goes on."""
    answer = server.answer_call
    return lambda sent: answer(sent) if not sent.path.endswith("/cancel") else server._answer(sent, "status")


@pytest.mark.parametrize("waits", ["answer", "retry"])
async def test_a_start_at_an_unreachable_server_gets_closed(face, waits):
    """While it waits for an answer that never comes, and while it waits to try again."""
    trip = Trip(delay=None) if waits == "answer" else Trip(lost="before")
    server, args = in_memory(creates=[trip] * 99, jumps=False)
    async with face.client(journal=":memory:", **args) as client:
        starting = face.beside(lambda: client.start("work", key="k"))
        await face.until(lambda: len(server.wire.requests) == 1)
        await client.close()
        assert isinstance(await starting.error(), errors.Closed)


async def test_a_status_that_never_comes_gets_closed(face):
    server, args = in_memory(statuses=[Trip(delay=None)] * 99, jumps=False)
    server.create()
    async with face.client(journal=":memory:", **args) as client:
        asking = face.beside(client.attach("run_1").status)
        await face.until(lambda: len(server.wire.requests) == 1)
        await client.close()
        assert isinstance(await asking.error(), errors.Closed)


async def test_a_client_that_was_never_used_closes(face, journal):
    server, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        client.attach("run_1")
    assert server.wire.requests == []


async def test_closing_while_waiting_to_reconnect_ends_it(face):
    _server, args = in_memory(story=QUIET, legs=[Leg(lost=True)] * 99, jumps=False)
    facts = Facts()
    async with face.client(journal=":memory:", observer=facts, **args) as client:
        run = await client.start("work", key="k")
        reading = face.beside(lambda: collected(run))
        await face.until(lambda: facts.count("waiting"))
        assert str(run.connection).startswith("reconnecting")
        await client.close()
        assert isinstance(await reading.error(), errors.Closed)


async def test_detaching_from_elsewhere_tells_the_blocked_loop_and_others_go_on(face):
    """Also while somebody else of this client looks at the run, so that following does not end."""
    server, args = in_memory(story=QUIET, jumps=False)
    facts = Facts()
    async with face.client(journal=":memory:", observer=facts, **args) as client:
        run = await client.start("work", key="k")
        waiting = face.beside(run.wait)
        reading = face.beside(lambda: collected(run))
        await face.until(lambda: facts.count("committed") and run.connection.phase == "live")
        await face.until(lambda: run._inner._reading if face.name == "blocking" else run._reading)
        await run.detach()
        await run.detach()
        assert isinstance(await reading.error(), errors.Closed)
        assert not waiting.done
        server.perform(server.run, Beat(do="end"))
        await settle(face, args)
        assert (await waiting.result()).status == "completed"


async def settle(face, args):
    clock = args["_seams"].clock()
    if face.name == "blocking":
        clock.advance(40)
    else:
        await clock.elapse(40)


async def test_a_run_that_was_dropped_lets_go_of_its_lease(face):
    """`for event in client.attach(id): break`, twice: the second is not busy with the first."""
    server, args = in_memory(story=QUIET, jumps=False)
    server.create()
    async with face.client(journal=":memory:", **args) as client:
        for _ in range(3):
            shown = sequences(await collected(client.attach("run_1"), 1))
            assert shown == [1]
        assert sequences(await collected(client.attach("run_1"), 2)) == [1, 2]


async def test_a_cancelled_consumer_loses_nothing(face):
    """Cancelled while it waits for the next event, or in its handler: it goes on where it was."""
    if face.name == "blocking":
        pytest.skip("threads are not cancelled; Ctrl-C has a test of its own")
    server, args = in_memory(story=QUIET, jumps=False)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        events = []
        task = asyncio.ensure_future(collected(run, into=events))
        await face.until(lambda: len(events) == 2)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        server.perform(server.run, Beat())
        server.perform(server.run, Beat())
        events += await collected(run, 1)
        with pytest.raises(TimeoutError):  # noqa: PT012 (what is entered or left raises)
            async with asyncio.timeout(0):
                async for _ in run:
                    await asyncio.sleep(60)
        rest = await collected(run, 2)
    assert sequences(events) == [1, 2, 3]
    assert [(event.sequence, event.redelivered) for event in rest] == [(3, True), (4, False)]


async def test_cancelled_anywhere_in_opening_and_reading_nothing_stays_behind(face, tmp_path):
    """Cut off after each number of turns of the loop: the next loop of the same client is never busy, and loses nothing."""
    if face.name == "blocking":
        pytest.skip("threads are not cancelled")
    for turns in range(60):
        server, args = in_memory(jumps=False)
        server.create()
        async with reattach.AsyncClient(journal=tmp_path / "runs.db", **args) as client:
            run = client.attach("run_1")
            task = asyncio.ensure_future(collected(run))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            rest = await collected(run)
            assert rest[-1].settles, f"cancelled after {turns} turns"
        assert server.wire.open_streams == 0
        for file in tmp_path.iterdir():
            file.unlink()


async def test_sockets_threads_and_descriptors_are_back_after_many_clients(face, live, tmp_path):
    def held():
        gc.collect()
        names = sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("reattach-writer"))
        return len(os.listdir("/proc/self/fd")), names

    async def one(number):
        async with face.client(live.url, tmp_path / f"{number}.db") as client:
            run = await client.start({"scenario": "slow"}, key=f"leak-{face.name}-{number}")
            await collected(run, 2)
            view = run.views()
            await anext(view)
            await view.aclose()

    tasks = asyncio.all_tasks()
    await one(0)
    before = held()
    for number in range(1, 8):
        await one(number)
    await face.until(lambda: held()[0] <= before[0] + 1 and held()[1] == before[1])
    if face.name == "async":
        assert asyncio.all_tasks() == tasks


async def test_an_async_client_works_on_trio_too(face, live, tmp_path):
    if face.name == "blocking":
        pytest.skip("the blocking face has no loop of the caller's")
    import trio

    async def work():
        async with reattach.AsyncClient(live.url, tmp_path / "trio.db") as client:
            run = await client.start({"scenario": "words"}, key="trio")
            return [event async for event in run], await run.result()

    events, result = await asyncio.to_thread(trio.run, work)
    assert events[-1].settles
    assert result == {"ok": True}
