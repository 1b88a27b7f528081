"""What happens if the user … : the rows of the surface's table that this version covers (surface.md, 1.4)."""

import gc
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
import time

import pytest

import reattach
from client_stage import PATIENCE, collected, in_memory, sequences
from reattach import errors
from reattach.runtime.portal import portal
from reattach.testing import Beat, Leg, VirtualClock

pytestmark = pytest.mark.anyio


def child(code, *args, **rest):
    """Start a Python process of its own; it says what it is at, a line each."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **rest,
    )


# forgets `with` ------------------------------------------------------------------------------------------------------


def test_a_client_without_with_works_and_is_released_when_collected(live, tmp_path):
    client = reattach.Client(live.url, tmp_path / "runs.db")
    run = client.start({"scenario": "words"}, key="without-with")
    assert list(run)[-1].settles
    del run
    served = client._host._serving
    dropped = [client]
    del client
    with pytest.warns(ResourceWarning, match="was not closed; write `with"):
        dropped.clear()
    served.result(PATIENCE)  # it ends, though nobody waits for it
    with reattach.Client(live.url, tmp_path / "runs.db") as client:
        assert list(client.start({"scenario": "words"}, key="without-with")) == []


def test_a_run_keeps_its_client(live, tmp_path):
    run = reattach.Client(live.url, tmp_path / "runs.db").start({"scenario": "words"}, key="kept")
    gc.collect()
    assert list(run)[-1].settles
    run._client.close()


def test_a_client_without_with_is_released_at_the_end_of_the_process(live, tmp_path):
    """With a warning, and nothing is lost: what was confirmed does not come again."""
    code = """
        import sys, warnings, reattach
        warnings.simplefilter("default")
        client = reattach.Client(sys.argv[1], sys.argv[2])
        run = client.start({"scenario": "words"}, key="at-exit")
        for event in run:
            if event.sequence == 4:
                break
        print("in hand", event.sequence)
    """
    process = child(code, live.url, tmp_path / "runs.db")
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "in hand 4\n"), err
    assert "ResourceWarning: a reattach.Client was not closed" in err
    assert "Traceback" not in err
    with reattach.Client(live.url, tmp_path / "runs.db") as client:
        events = list(client.start({"scenario": "words"}, key="at-exit"))
    assert events[0].sequence == 4
    assert events[0].redelivered


async def test_an_async_client_without_with_is_refused_at_the_first_await(live, tmp_path):
    client = reattach.AsyncClient(live.url, tmp_path / "runs.db")
    run = client.attach("run_1")
    for awaited in (lambda: client.start("x", key="k"), client.runs, run.status, run.wait, lambda: anext(run), run.ack):
        with pytest.raises(
            errors.UsageError, match=r"Write: async with reattach.AsyncClient\(url, journal\) as client"
        ):
            await awaited()
    await client.close()


# iterates in two threads, two processes ----------------------------------------------------------------------------


async def test_a_second_loop_over_one_run_is_busy_at_once(face):
    server, args = in_memory(story=[Beat()], jumps=False)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        shown = []
        first = face.beside(lambda: collected(run, into=shown))
        await face.until(lambda: len(shown) == 2)
        with pytest.raises(errors.RunBusy, match="by another thread or task of this client"):
            await anext(run)
        with pytest.raises(
            errors.RunBusy, match=f"consumer 'main' by pid {os.getpid()} on {socket.gethostname()} since"
        ):
            await collected(client.attach(run.id))
        assert (await run.view()).cursor == "e1.2"
        assert await collected(client.attach(run.id, after="beginning"), 2)
        server.perform(server.run, Beat(do="end"))
        assert sequences(await first.result()) == [1, 2, 3]


async def test_different_runs_and_lookers_on_side_by_side(face, live, tmp_path):
    async with face.client(live.url, tmp_path / "runs.db") as client:

        async def follow(number):
            run = await client.start({"scenario": "words"}, key=f"side-{face.name}-{number % 3}")
            match number // 3:
                case 0:
                    return (await collected(run))[-1].settles
                case 1:
                    return (await run.wait()).status == "completed"
                case 2:
                    return [view async for view in run.views(interval=0.001)][-1].status == "completed"
                case _:
                    return (await collected(client.attach(run.id, after="beginning")))[-1].settles

        beside = [face.beside(lambda number=number: follow(number)) for number in range(12)]
        assert [await each.result() for each in beside] == [True] * 12


FOLLOWER = """
    import sys, reattach
    with reattach.Client(sys.argv[1], sys.argv[2]) as client:
        run = client.start({"scenario": "slow"}, key=sys.argv[3])
        for event in run:
            print(event.sequence, run.id, flush=True)
            if event.sequence == 3:
                sys.stdin.readline()
"""


async def test_a_second_process_is_busy_looks_on_and_takes_over_at_once(face, live, tmp_path):
    """RunBusy names host, pid and since; views and after= read the journal: one connection in all; the dead are replaced."""
    key = f"processes-{face.name}"
    holder = child(FOLLOWER, live.url, tmp_path / "runs.db", key, stdin=subprocess.PIPE)
    try:
        run_id = holder.stdout.readline().split()[1]
        assert [holder.stdout.readline().split()[0] for _ in range(2)] == ["2", "3"]
        async with face.client(live.url, tmp_path / "runs.db") as client:
            run = client.attach(run_id)
            facts = f"by pid {holder.pid} on {re.escape(socket.gethostname())} since 20..-..-.. ..:..:.. UTC"
            with pytest.raises(errors.RunBusy, match=facts):
                await collected(run)
            looking = client.attach(run_id, after="beginning")
            assert sequences(await collected(looking, 3)) == [1, 2, 3]
            assert str(looking.connection) == "following what another process writes"
            view_of = run.views()
            view = await anext(view_of)
            assert view.connection.phase == "following"
            await face.until(lambda: live.readers(run_id) == 1)
            holder.kill()
            holder.wait()
            events = await collected(run, 2)
            assert [(event.sequence, event.redelivered) for event in events] == [(3, True), (4, True)]
            await looking.detach()
            await view_of.aclose()
            await face.until(lambda: live.readers(run_id) == 1)
    finally:
        holder.kill()
        holder.communicate()


# interrupts, forks ---------------------------------------------------------------------------------------------------


def test_ctrl_c_in_the_blocked_loop_passes_at_once_and_loses_nothing(live, tmp_path):
    code = """
        import signal, sys, reattach
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so do its children
        try:
            with reattach.Client(sys.argv[1], sys.argv[2]) as client:
                for event in client.start({"scenario": "slow"}, key="ctrl-c"):
                    print(event.sequence, flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = child(code, live.url, tmp_path / "runs.db")
    shown = [int(process.stdout.readline()) for _ in range(4)]
    process.send_signal(signal.SIGINT)
    out, err = process.stdout.read(), process.stderr.read()
    process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.endswith("interrupted\n")
    shown += [int(line) for line in out.splitlines()[:-1]]
    connection = sqlite3.connect(tmp_path / "runs.db")
    ((applied,),) = connection.execute("SELECT applied FROM reattach_marks WHERE consumer = 'main'")
    (committed,) = connection.execute("SELECT max(position) FROM reattach_events").fetchone()
    connection.close()
    assert shown == list(range(1, len(shown) + 1))
    assert shown[-1] - 1 <= applied <= shown[-1] <= committed == 6


def test_an_interrupted_opening_leaves_nothing_behind(tmp_path):
    """Ctrl-C while the first next() still opens: the same client goes on, and is not busy with itself."""
    server, args = in_memory(jumps=False)
    server.create()
    with reattach.Client(journal=tmp_path / "runs.db", **args) as client:
        run = client.attach("run_1")
        call = client._host.call
        for turn in range(1, 6):

            def interrupted(function, *rest, turn=turn):
                engine = client._host.engine()
                future = portal().submit(engine.during, function, *rest)
                time.sleep(0.0005 * turn)  # wherever it is by then
                future.cancel()
                raise KeyboardInterrupt

            client._host.call = interrupted
            with pytest.raises(KeyboardInterrupt):
                next(run)
            client._host.call = call
        assert list(run)[-1].settles


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_in_a_fork_the_parents_handles_are_refused_and_a_new_client_works(live, tmp_path):
    code = """
        import os, sys, reattach
        client = reattach.Client(sys.argv[1], sys.argv[2])
        run = client.start({"scenario": "words"}, key="fork")
        loop = iter(run)
        next(loop)
        view = run.views(); next(view)
        pid = os.fork()
        if pid == 0:
            refused = 0
            for act in (lambda: next(loop), client.runs, run.view, run.wait, run.ack, run.status,
                        lambda: client.start("x", key="y"), lambda: run.transaction().__enter__()):
                try:
                    act()
                except reattach.UsageError as error:
                    assert "this is its fork" in str(error) and "Make a new client" in str(error), error
                    refused += 1
            run.detach(); client.close(); view.close()
            with reattach.Client(sys.argv[1], sys.argv[2]) as mine:
                seen = [event.sequence for event in mine.attach(run.id, after="beginning")]
                result = mine.attach(run.id).result()
            print("child", refused, seen[0], result, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        rest = [event.sequence for event in loop]
        print("parent", rest == list(range(1, len(rest) + 1)), run.result(), flush=True)
        view.close()
        client.close()
    """
    process = child(code, live.url, tmp_path / "runs.db")
    out, err = process.communicate(timeout=PATIENCE)
    assert out == "child 8 1 {'ok': True}\nparent True {'ok': True}\n", err


# is slow -------------------------------------------------------------------------------------------------------------


async def test_a_slow_handler_never_stops_the_reading(face, live, tmp_path):
    """The log is committed to its end while the handler has the first event in hand; older ones are read from the file."""
    journal = tmp_path / "runs.db"

    def ended():
        with sqlite3.connect(journal) as other:
            ((outcome,),) = other.execute("SELECT outcome FROM reattach_runs").fetchall()
        other.close()
        return outcome is not None

    async with face.client(live.url, journal, policy=reattach.Policy(max_buffered_events=4)) as client:
        run = await client.start({"scenario": "burst"}, key=f"burst-{face.name}")
        events = []
        async for event in run:
            if not events:
                await face.until(ended)
            events.append(event)
    assert sequences(events) == list(range(1, len(events) + 1))
    assert events[-1].settles
    assert [event.id for event in events] == [
        re.search(rb'"id":"([^"]+)"', body)[1].decode() for body in live.log(run.id)
    ]


async def test_a_handler_that_is_slow_to_commit_makes_no_connection_lost(face):
    """While a user's transaction has the writer we do not read, and silence says nothing: idle, behind and budget stand."""
    from reattach.runtime.timers import Timers

    clock, rang = VirtualClock(), []
    timers = Timers(clock, rang.append)
    timers.start("idle", 5)
    timers.start("poll", 7)
    timers.stand("idle", "behind", "budget")
    timers.start("behind", 1)
    clock._now = 100
    clock._ring_due()
    assert rang == ["poll"]
    assert timers.left("idle") == 5
    timers.go_on()
    clock._now = 101
    clock._ring_due()
    assert rang == ["poll", "behind"]
    clock._now = 105
    clock._ring_due()
    assert rang == ["poll", "behind", "idle"]


# views ---------------------------------------------------------------------------------------------------------------


async def test_views_are_drawn_again_when_the_connection_changes(face):
    _, args = in_memory(story=[Beat()], legs=[Leg(cut=(2, 0), how="reset"), *[Leg(lost=True)] * 99], jumps=False)
    clock = args["_seams"].clock()
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        lines = []

        async def look():
            async for view in run.views(interval=0):
                lines.append(str(view.connection))  # noqa: PERF401 (looked at while it grows)

        looking = face.beside(look)
        await face.until(lambda: lines)
        if face.name == "blocking":
            clock.advance(5)
        else:
            await clock.elapse(5)
        await face.until(lambda: any(re.match(r"reconnecting .*connection reset by peer", line) for line in lines))
        await client.close()
        assert isinstance(await looking.error(), errors.Closed)


async def test_an_unfinished_run_is_listed_and_a_finished_one_is_not(face, live, tmp_path):
    async with face.client(live.url, tmp_path / "runs.db") as client:
        slow = await client.start({"scenario": "slow"}, key=f"listed-{face.name}")
        done = await client.start({"scenario": "words"}, key=f"done-{face.name}")
        await collected(done)
        assert [run.id for run in await client.runs()] == [done.id, slow.id]
        assert [(run.id, run.key, run.needs) for run in await client.runs(unfinished=True)] == [
            (slow.id, f"listed-{face.name}", "follow")
        ]
        assert slow.session_id
        assert slow.created_at.tzinfo is not None
        assert (await slow.status()) == "running"
        with pytest.raises(errors.WaitTimeout, match=r"has not ended within 0\.05 s. It goes on") as caught:
            await slow.wait(timeout=0.05)
        assert isinstance(caught.value, TimeoutError)
        with pytest.raises(errors.WaitTimeout):
            await slow.result(timeout=0)
        assert await done.result(timeout=0) == {"ok": True}


async def test_facts_of_an_async_run_that_nothing_was_asked_of_are_refused_not_guessed(live, tmp_path):
    async with reattach.AsyncClient(live.url, tmp_path / "runs.db") as client:
        started = await client.start({"scenario": "words"}, key="facts")
        run = client.attach(started.id)
        with pytest.raises(errors.UsageError, match="Await anything of it first"):
            run.key  # noqa: B018
        await run.view()
        assert (run.key, run.needs) == ("facts", "follow")
        assert [event async for event in run][-1].settles
        assert run.needs == "nothing"
