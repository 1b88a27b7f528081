"""Promise 11: the faces lie around no code of the user's, and share what a process has one of.

No task group is held across the user's code; a client may end in another task than it began in, and loops may come and go. A
thousand runs cost a thousand subscriptions, and not a thread, a task or a timer each while they wait.
"""

import asyncio
import contextlib
import gc
import threading

import anyio
import anyio.lowlevel
import pytest

import reattach
from client_stage import PATIENCE, collected, in_memory
from reattach import errors
from reattach.testing import Beat, Leg

QUIET = [Beat()]
BOTH = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def bounded(function, backend="asyncio", patience=PATIENCE):
    """Run a coroutine function in a loop of its own."""

    async def within():
        with anyio.fail_after(patience):
            return await function()

    return anyio.run(within, backend=backend)


# whose scope ---------------------------------------------------------------------------------------------------------


@BOTH
def test_a_client_may_be_entered_in_one_task_and_left_in_another(backend, tmp_path):
    """As fixtures and lifespans of frameworks do; anyio's scopes around it would refuse that."""

    async def work():
        _, args = in_memory()
        client = reattach.AsyncClient(journal=tmp_path / "runs.db", **args)
        for step in (client.__aenter__, lambda: client.__aexit__(None, None, None)):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(step)
        with pytest.raises(errors.Closed):
            await client.runs()

    bounded(work, backend)


@BOTH
def test_a_generator_of_the_users_may_hold_a_client_across_its_yields(backend, tmp_path):
    """A relay to browsers: whoever asks for the next event may be another task each time, and closes it when it likes."""

    async def relay():
        _, args = in_memory()
        async with reattach.AsyncClient(journal=tmp_path / "runs.db", **args) as client:
            run = await client.start("work", key="k")
            async with client.attach(run.id, after="beginning") as reading:
                async for event in reading:
                    yield event.sequence

    async def work():
        events, seen = relay(), []

        async def ask():
            seen.append(await anext(events))

        for _ in range(3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(events.aclose)
        assert seen == [1, 2, 3]

    bounded(work, backend)
    assert writers() == 0


@BOTH
def test_clients_may_be_left_in_any_order(backend, tmp_path):
    """Scopes held across the user's code would have to be left in the reverse order."""

    async def work():
        clients = []
        for number in range(3):
            _, args = in_memory()
            client = reattach.AsyncClient(journal=tmp_path / f"{number}.db", **args)
            await client.__aenter__()
            clients.append(client)
        for client in clients:
            assert len(await collected(await client.start("work", key="k"))) == 5
            await client.__aexit__(None, None, None)

    bounded(work, backend)


@BOTH
def test_a_limit_of_time_around_a_client_ends_the_users_code_and_nothing_of_ours(backend, tmp_path):
    """The user's scope is cancelled; what is in flight still settles, and the same client goes on outside of the scope."""

    async def work():
        server, args = in_memory(story=QUIET, jumps=False)
        client = None
        with anyio.CancelScope() as scope:
            client = await reattach.AsyncClient(journal=tmp_path / "runs.db", **args).__aenter__()
            run = await client.start("work", key="k")
            async for event in run:
                if event.sequence == 2:
                    scope.cancel()
        server.perform(server.run, Beat())
        assert [event.sequence for event in await collected(run, 1)] == [3]
        await client.__aexit__(None, None, None)

    bounded(work, backend)


@BOTH
def test_a_close_that_is_cancelled_is_finished_all_the_same(backend, tmp_path):
    """Who waits for it may be cancelled; the second who asks finds it closed, and waits for nothing."""

    async def work():
        server, args = in_memory(story=QUIET, jumps=False)
        async with reattach.AsyncClient(journal=tmp_path / "runs.db", **args) as client:
            run = await client.start("work", key="k")
            await collected(run, 2)
            if backend == "asyncio":
                for turns in range(3):
                    closing = asyncio.ensure_future(client.close())
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    closing.cancel()
                    await asyncio.wait([closing])
            else:
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await client.close()
            await client.close()
            assert server.wire.open_streams == 0
            with pytest.raises(errors.Closed):
                await client.runs()

    bounded(work, backend)
    assert writers() == 0


# loops that come and go -------------------------------------------------------------------------------------------------


@BOTH
def test_loops_one_after_another_in_one_process_go_on_on_one_journal(backend, tmp_path):
    """Two `asyncio.run`, say: nothing of ours is bound to a loop that is gone."""
    server, args = in_memory()

    async def work(limit):
        async with reattach.AsyncClient(journal=tmp_path / "runs.db", **args) as client:
            return [event.sequence for event in await collected(await client.start("work", key="k"), limit)]

    assert bounded(lambda: work(2), backend) == [1, 2]
    assert bounded(lambda: work(None), backend) == [2, 3, 4, 5]
    assert len(server.runs) == 1


def test_both_faces_side_by_side_on_one_journal_in_one_process(live, tmp_path):
    """A thread with the blocking face, and loops of asyncio and trio; each has a consumer's turn, none is in another's way."""

    async def awaited(number):
        async with reattach.AsyncClient(live.url, tmp_path / "runs.db") as client:
            run = await client.start({"scenario": "words"}, key=f"beside-{number}")
            return [event.sequence async for event in run]

    with reattach.Client(live.url, tmp_path / "runs.db") as client:
        run = client.start({"scenario": "words"}, key="beside-0")
        next(run)
        told = [bounded(lambda: awaited(1)), bounded(lambda: awaited(2), "trio")]
        rest = [event.sequence for event in run]
    assert told == [rest, rest]


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
def test_a_loop_that_ends_while_a_client_is_in_use_ends_too(turns, tmp_path):
    """`asyncio.run` cancels every task there is, ours too, in any order: it returns, and the next loop goes on."""
    server, args = in_memory(story=QUIET, jumps=False)

    async def use():
        async with reattach.AsyncClient(journal=tmp_path / "runs.db", **args) as client:
            await collected(await client.start("work", key="k"))

    async def work():
        using = asyncio.ensure_future(use())
        for _ in range(turns):
            await asyncio.sleep(0)
        return using

    ended = threading.Event()

    def loop():
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(work())
        ended.set()

    threading.Thread(target=loop, daemon=True).start()
    assert ended.wait(PATIENCE), "the loop does not end"
    gc.collect()
    assert writers() == 0

    async def again():
        async with reattach.AsyncClient(journal=tmp_path / "runs.db", **args) as client:
            return (await collected(await client.start("work", key="k"), 2))[-1].sequence

    assert bounded(again) == 2
    assert server.wire.open_streams == 0


# thousands of runs ------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("runs", [60, pytest.param(2_000, marks=pytest.mark.slow)])
def test_many_runs_share_one_writer_and_one_scheduler(backend, runs, tmp_path):
    """A run that is followed costs its connection and the timers of its state; no thread, and no task but the connection's."""
    servers = []

    async def work():
        server, args = in_memory(story=QUIET, legs=[Leg()] * runs, jumps=False)
        servers.append(server)
        clock = args["_seams"].clock()
        async with reattach.AsyncClient(journal=tmp_path / "runs.db", **args) as client:
            one = await client.start("work", key="k0")
            await collected(one, 2)
            threads = threading.active_count()
            tasks, alarms = tasks_now(), alarms_of(clock)
            followed = [await client.start("work", key=f"k{number}") for number in range(1, runs)]
            for run in followed:
                await collected(run, 2)
            assert server.wire.open_streams == runs
            assert threading.active_count() <= threads, "threads"
            more_tasks, more_alarms = tasks_now() - tasks, alarms_of(clock) - alarms
            assert writers() == 1
            assert more_tasks <= 2 * (runs - 1), "a connection's task, and the one that keeps the run's lease"
            # idle, poll and behind at most, and the model server's own heartbeat
            assert more_alarms <= 4 * (runs - 1)
            await clock.elapse(31.0)  # every run is asked for its status, in one loop
            assert len([each for each in server.wire.requests if each.method == "GET" and not each.stream]) >= runs
            assert threading.active_count() <= threads
            for run in followed:
                await run.detach()
            await one.detach()
            assert tasks_now() <= tasks
            assert server.wire.open_streams == 0
        return more_tasks / (runs - 1), more_alarms / (runs - 1)

    bounded(work, backend, PATIENCE + runs / 2)  # each start waits for the disk four times
    assert writers() == 0


def tasks_now():
    """Return how many tasks the running loop has."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        import trio

        return trio.lowlevel.current_statistics().tasks_living


def alarms_of(clock):
    return sum(alarm.callback is not None for _, _, alarm in clock._heap)


def writers():
    return sum(thread.name == "reattach-writer" for thread in threading.enumerate())
