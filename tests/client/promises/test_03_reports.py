"""Promises 3, 8, 9 and 11, as people reported other clients to break them (B34, B40, B53, B54, B59, B66, B89); in both faces.

The other reports are in `tests/client/test_reports.py`.
"""

import asyncio
import gc

import anyio
import anyio.lowlevel
import pytest

import reattach
from client_stage import collected, held, in_memory, sequences
from reattach import errors
from reattach.testing import Beat, Leg, Wire, frames, told
from reattach.testing.memory_server import URL

pytestmark = pytest.mark.anyio

SLOWLY = [*[Beat(after=1)] * 12, Beat(after=1, do="end")]


def scripted(args):
    """A wire without a server, and what its client is made with."""
    wire = Wire(clock=args["_seams"].clock())
    for run in ("run_1", "run_2"):
        wire.on_call("GET", f"/v1/runs/{run}", told(frames.run_json(run_id=run, last=1)))
    return wire, {"url": URL, "transport": wire, "_seams": args["_seams"]}


async def test_a_connection_that_breaks_and_ends_starts_one_loop(face):
    """B34, promise 9: error and close both scheduled a reconnect, and connections doubled at each restart of the server."""
    server, args = in_memory(story=SLOWLY, legs=[Leg(cut=(2, 0), how="reset")] * 11)

    class Twice:
        """Each body that was reset also ends."""

        answer_call = server.answer_call

        def answer_stream(self, sent):
            answer = server.answer_stream(sent)
            if len(whole.attaches()) <= 11:
                answer.body.fin()
            return answer

    whole = Wire(clock=args["_seams"].clock(), server=Twice())
    held(server, args)
    async with face.client(journal=":memory:", **args | {"transport": whole}) as client:
        events = await collected(await client.start("work", key="k"))
    assert [event.id for event in events] == [logged.id for logged in server.run.log]
    assert whole.most_streams == 1
    assert len(whole.attaches()) <= 14


async def test_reconnecting_by_hand_while_it_waits_starts_no_second_one(face):
    """B34, promise 9: the user called `reconnect()` during the wait. Here that is to leave the loop and to enter it again."""
    server, args = in_memory(story=SLOWLY, legs=[Leg(lost=True)] * 6)
    held(server, args)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        others = [client.attach(run.id, consumer=f"pane {number}") for number in range(3)]
        for one in (*others, run):
            await collected(one, 1)
            await one.detach()
            await collected(one, 2)
        assert server.wire.open_streams <= 1
        events = await collected(run)
    assert sequences(events)[-1] == 14
    assert server.wire.most_streams == 1
    assert server.wire.open_streams == 0


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")  # trio's advice to whoever drops a generator
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_iterator_that_is_dropped_harms_nobody(backend):
    """B40, promise 11: finalised in another task, it left a scope behind: a busy core, and foreign cancels at later awaits."""
    strays = []

    async def drop(client):
        async def generator():
            async for event in client.attach("run_1"):
                yield event

        relay = generator()
        async for _ in relay:
            break
        async for view in client.attach("run_1").views():
            assert view.run_id == "run_1"
            break

    async def work():
        if backend == "asyncio":
            asyncio.get_running_loop().set_exception_handler(lambda _, context: strays.append(context))
        server, args = in_memory(story=[*[Beat()] * 4, Beat(after=10_000, do="end")], jumps=False)
        server.create()
        async with reattach.AsyncClient(journal=":memory:", **args) as client:
            for _ in range(5):
                await drop(client)
                gc.collect()
                for _ in range(20):
                    await anyio.lowlevel.checkpoint()
            statistics = server.wire.requests.copy()
            with anyio.fail_after(20):
                assert sequences(await collected(client.attach("run_1"), 5)) == [1, 2, 3, 4, 5]
            assert len(server.wire.requests) - len(statistics) < 5, "nobody is busy asking"
        assert server.wire.open_streams == 0

    anyio.run(work, backend=backend)
    assert strays == []


async def test_the_same_events_over_three_connections_are_applied_once(face):
    """B53, promise 3: a set of ids of one connection only; after a second drop the event came twice."""
    _, args = in_memory(inline=True)
    wire, args = scripted(args)
    wire.expect_attach(None).send(frames.attached(), *map(frames.event, (1, 2, 3))).reset()
    wire.expect_attach("e1.3").send(frames.attached(3), *map(frames.event, (2, 3))).reset()
    wire.expect_attach("e1.3").send(frames.attached(3), *map(frames.event, (1, 2, 3, 4))).reset()
    wire.expect_attach("e1.4").send(frames.attached(4), *map(frames.event, (3, 4)), frames.end(5)).fin()
    async with face.client(journal=":memory:", **args) as client:
        events = await collected(client.attach("run_1"))
    assert sequences(events) == [1, 2, 3, 4, 5]
    assert not any(event.redelivered for event in events)
    assert wire.faults == []


async def test_two_reasons_to_resume_at_once_make_one_attachment(face):
    """B54, promise 3: resume was offered on two paths, both were taken, and the whole reply was shown twice, stacked."""
    story = [*[Beat()] * 60, Beat(after=2), Beat(after=2, do="end")]
    server, args = in_memory(story=story, legs=[Leg(cut=(56, 0), how="reset"), Leg(again=50)])
    held(server, args)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        follower = face.beside(lambda: collected(client.attach(run.id, consumer="pane")))
        events = await collected(run)
        outcome = await run.wait()
        other = await follower.result()
    whole = [logged.id for logged in server.run.log]
    assert [event.id for event in events] == [event.id for event in other] == whole
    assert "".join(event.text for event in events) == outcome.text
    assert server.wire.most_streams == 1
    assert len(server.wire.attaches()) == 2


async def test_a_new_process_says_where_it_is_at_its_first_request(face, journal):
    """B59, promise 3: an application's own reconnect forgot the id, which lived in the connection, and got everything again."""
    server, args = in_memory(story=[*[Beat()] * 4, Beat(after=50, do="end")], jumps=False)
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        async with run:
            await collected(run, 5)
    before = len(server.wire.attaches())
    async with face.client(journal=journal, **args) as client:
        run = client.attach(server.run.id)
        follower = face.beside(lambda: collected(run, 1))
        await face.until(lambda: len(server.wire.attaches()) > before)
        assert server.wire.attaches()[before].after == "e1.5"
        server.perform(server.run, Beat())
        assert sequences(await follower.result()) == [6]


@pytest.mark.parametrize("on_gap", ["raise", "snapshot", "continue"])
async def test_a_refused_position_is_never_sent_again(face, on_gap):
    """B66, promise 8: 410 was counted as a drop, and the same cursor sent again until the budget was gone."""
    story = [
        *[Beat()] * 6,
        Beat(after=5, do="trim", count=9),
        *[Beat()] * 3,
        Beat(do="trim", count=3),
        Beat(after=60, do="end"),
    ]
    server, args = in_memory(inline=True, story=story, legs=[Leg(cut=(8, 0), how="reset"), *[Leg(lost=True)] * 4])
    held(server, args)
    async with face.client(journal=":memory:", on_gap=on_gap, **args) as client:
        run = await client.start("work", key="k")
        if on_gap == "raise":
            with pytest.raises(errors.CursorExpired) as caught:
                await collected(run)
            assert caught.value.gap.after == "e1.7"
        else:
            assert [event.gap.reason for event in await collected(run) if event.gap] == ["expired"]
    answered = [sent.after for sent in server.wire.attaches()][5:]
    assert answered.count("e1.7") == 1
    assert answered[0] == "e1.7"


async def test_two_runs_with_the_same_numbers_and_ids_do_not_mix(face, journal):
    """B89, promise 3: real events were dropped as duplicates, since the key was not scoped to the run."""
    _, args = in_memory(inline=True)
    wire, args = scripted(args)
    for run in ("run_1", "run_2"):
        body = wire.expect_attach()
        body.send(
            frames.attached(run_id=run), *[frames.event(at, run_id=run) for at in (1, 2)], frames.end(3, run_id=run)
        )
        body.fin()
    async with face.client(journal=journal, **args) as client:
        for run in ("run_1", "run_2"):
            events = await collected(client.attach(run))
            assert [(event.run_id, event.id) for event in events] == [(run, f"evt_e1_{at}") for at in (1, 2, 3)]
    assert wire.faults == []


async def test_events_of_one_millisecond_are_all_events(face):
    """B89, promise 3: a timestamp was the id; two events in one millisecond were one. Here also with the same text."""
    _, args = in_memory(inline=True)
    wire, args = scripted(args)
    same = {"data": {"message_id": "m1", "text": "tick "}, "time": frames.TIME}
    wire.expect_attach(None).send(frames.attached(), *[frames.event(at, **same) for at in (1, 2, 3)]).reset()
    wire.expect_attach("e1.3").send(
        frames.attached(3), frames.event(3, **same), frames.event(4, **same), frames.end(5)
    ).fin()
    async with face.client(journal=":memory:", **args) as client:
        events = await collected(client.attach("run_1"))
    assert [event.text for event in events[:4]] == ["tick "] * 4
    assert len({event.time for event in events}) == 1


async def test_the_same_id_with_other_data_is_a_conflict_also_within_one_connection(face):
    """B89, promise 3: two writers counted from zero; never a silent drop."""
    _, args = in_memory(inline=True)
    wire, args = scripted(args)
    wire.expect_attach(None).send(
        frames.attached(), frames.event(1), frames.event(1, data={"text": "another writer's"})
    )
    async with face.client(journal=":memory:", **args) as client:
        with pytest.raises(errors.EventConflict):
            await collected(client.attach("run_1"))
