"""Promise 10: quiet is not dead, and open is not alive. In virtual time, through both faces."""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from client_stage import Facts, collected, held, in_memory, sequences
from reattach.policy import Policy
from reattach.profiles import Native
from reattach.testing import Beat, InlineWriter, Leg, Seams, VirtualClock, Wire, frames, told
from reattach.testing.answers import CallAnswer
from reattach.testing.memory_server import URL

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def scripted(face, clock: VirtualClock, wire: Wire, **more):
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json(last=1)))
    facts = Facts()
    async with face.client(
        URL, ":memory:", transport=wire, observer=facts, _seams=Seams(clock=lambda: clock, writer=InlineWriter), **more
    ) as client:
        yield client, facts


def unstated(**more) -> bytes:
    """The beginning of a stream that does not say how often its heart beats."""
    return frames.attached(heartbeat_ms=0, **more)


async def test_ten_minutes_of_comments_are_no_silence(face) -> None:
    """Promise 10, B15: any byte is liveness; a comment each 30 s keeps a stream that has no news."""
    server, args = in_memory(inline=True, story=[Beat(after=600, do="end", data="ok")], heartbeat_ms=45_000)
    async with face.client(journal=":memory:", **args) as client:
        assert sequences(await collected(await client.start("work", key="k"))) == [1, 2]
    assert len(server.wire.attaches()) == 1


async def test_a_stream_without_progress_raises_a_notice_and_restarts_nothing(face) -> None:
    """Promise 10, B16: alive for twenty minutes and no event: said each five minutes, and left alone."""
    server, args = in_memory(inline=True, story=[Beat(after=1200, do="end", data="ok")])
    held(server, args)
    facts = Facts()
    async with face.client(journal=":memory:", **args, observer=facts) as client:
        await collected(await client.start("work", key="k"))
    assert facts.count("stall") >= 3
    assert len(server.wire.attaches()) == 1


async def test_silence_beyond_the_stated_heartbeat_is_a_loss(face) -> None:
    """Promise 10, B14: half-open: nothing comes and nobody says so; after three heartbeats it is left, with the same cursor."""
    server, args = in_memory(
        inline=True,
        story=[Beat(), Beat(after=30, do="end", data="ok")],
        legs=[Leg(cut=(3, 0), how="stall")],
        heartbeat_ms=2_000,
    )
    held(server, args)
    async with face.client(journal=":memory:", **args) as client:
        assert sequences(await collected(await client.start("work", key="k"))) == [1, 2, 3]
    first, second = server.wire.attaches()
    assert second.at - first.at == pytest.approx(6.0, abs=1.0)
    assert second.after == "e1.2"


async def test_a_heartbeat_that_is_not_stated_is_learnt(face) -> None:
    """Promise 10: three comments in a row, 20 s apart, with nothing between: 60 s of silence are a loss, 45 are none."""
    clock = VirtualClock()
    wire = Wire(clock=clock)
    body = wire.expect_attach(None).send(unstated(), frames.event(1))
    wire.expect_attach("e1.1").send(frames.attached(1), frames.end(2)).fin()
    async with scripted(face, clock, wire) as (client, _):
        run = await client.start("work", key="k")
        loop = face.beside(lambda: collected(run))
        await face.until(lambda: len(wire.attaches()) == 1)
        for _ in range(4):
            await advance(face, clock, 20)
            body.send(frames.HEARTBEAT)
        await advance(face, clock, 55)
        assert len(wire.attaches()) == 1, "45 s would have been the limit"
        await advance(face, clock, 10)
        assert sequences(await loop.result()) == [1, 2]
    assert len(wire.attaches()) == 2


async def test_a_flow_of_events_teaches_no_heartbeat(face) -> None:
    """Promise 10: what comes fast is no promise to go on coming; the policy's limit holds when it ends."""
    clock = VirtualClock()
    wire = Wire(clock=clock)
    body = wire.expect_attach(None).send(unstated(), frames.event(1))
    wire.expect_attach().send(frames.attached(9), frames.end(10)).fin()
    async with scripted(face, clock, wire) as (client, _):
        run = await client.start("work", key="k")
        loop = face.beside(lambda: collected(run))
        await face.until(lambda: len(wire.attaches()) == 1)
        for number in range(2, 10):
            await advance(face, clock, 1)
            body.send(frames.event(number))
        await advance(face, clock, 40)
        assert len(wire.attaches()) == 1
        await advance(face, clock, 10)
        await loop.result()
    assert len(wire.attaches()) == 2


async def advance(face, clock: VirtualClock, seconds: float) -> None:
    if face.name == "async":
        await clock.elapse(seconds)
    else:
        clock.advance(seconds)


@pytest.mark.parametrize("leg", [Leg(cut=(2, 0), how="stall"), Leg(refuse=503)], ids=["open", "waiting"])
async def test_a_laptop_that_slept_attaches_at_once(face, leg: Leg) -> None:
    """Promise 10, B22: the wall clock jumped an hour while the monotonic one moved seconds: status and attach at once."""
    server, args = in_memory(beats=3, legs=[leg], jumps=False)
    clock = args["_seams"].clock()
    facts = Facts()
    policy = Policy(retry_floor=20, retry_base=30, retry_ceiling=40)
    async with face.client(journal=":memory:", **args, observer=facts, policy=policy) as client:
        run = await client.start("work", key="k")
        loop = face.beside(lambda: collected(run))
        await face.until(lambda: len(server.wire.attaches()) == 1)
        await advance(face, clock, 1)
        clock.step_wall(3600)
        statuses = len(server.wire.calls("GET", "/v1/runs/run_1"))
        await advance(face, clock, 5)
        assert facts.count("woke") == 1
        assert len(server.wire.calls("GET", "/v1/runs/run_1")) > statuses, "the status first"
        await advance(face, clock, 20)
        assert sequences(await loop.result()) == [1, 2, 3, 4, 5]
    assert len(server.wire.attaches()) == 2


async def test_a_wish_that_came_after_the_sleep_is_kept(face) -> None:
    """Promise 9 and 10: a sleep is noticed seconds after waking; a Retry-After that came in between is none of its past."""
    server, args = in_memory(beats=3, legs=[Leg(refuse=429, retry_after=60)], jumps=False)
    clock = args["_seams"].clock()
    facts = Facts()
    async with face.client(journal=":memory:", **args, observer=facts) as client:
        run = await client.start("work", key="k")
        clock.step_wall(3600)
        loop = face.beside(lambda: collected(run))
        await face.until(lambda: len(server.wire.attaches()) == 1)
        await advance(face, clock, 6)
        assert facts.count("woke") == 1
        await advance(face, clock, 50)
        assert len(server.wire.attaches()) == 1
        await advance(face, clock, 60)
        assert sequences(await loop.result()) == [1, 2, 3, 4, 5]
    assert len(server.wire.attaches()) == 2


async def test_a_wall_clock_put_back_or_a_little_forward_means_nothing(face) -> None:
    """Promise 10: nothing waits by the wall clock."""
    server, args = in_memory(inline=True, story=[Beat(after=100, do="end", data="ok")], jumps=False)
    clock = args["_seams"].clock()
    facts = Facts()
    async with face.client(journal=":memory:", **args, observer=facts) as client:
        run = await client.start("work", key="k")
        loop = face.beside(lambda: collected(run))
        await face.until(lambda: len(server.wire.attaches()) == 1)
        for step in (-3600, 5, -86_400, 3):
            clock.step_wall(step)
            await advance(face, clock, 6)
        assert facts.count("woke") == 0
        await advance(face, clock, 100)
        await loop.result()
    assert len(server.wire.attaches()) == 1


async def test_a_sleep_spends_no_budget() -> None:
    """Promise 9 and 10: both clocks went on for an hour while nothing ran; the budget of ten minutes begins anew."""
    import client_stage

    server, args = in_memory(beats=2, legs=[Leg(lost=True)], statuses=[], jumps=False)
    clock = args["_seams"].clock()
    face = client_stage.Async()
    facts = Facts()
    policy = Policy(retry_floor=30, retry_base=30, retry_ceiling=30)
    async with face.client(journal=":memory:", **args, observer=facts, policy=policy) as client:
        run = await client.start("work", key="k")
        loop = face.beside(lambda: collected(run))
        await face.until(lambda: facts.count("waiting") == 1)
        clock.oversleep(3600)
        await clock.elapse(0)
        await clock.elapse(30)
        assert sequences(await loop.result()) == [1, 2, 3, 4]
    assert facts.count("woke") == 1
    assert len(server.wire.attaches()) == 2


async def test_a_sleep_in_the_middle_of_a_create_is_no_reason_to_give_it_up(face) -> None:
    """Promise 10: found by the simulation (seed 861): the machine slept while the answer was under way, and that was lost.

    The hour was counted as an hour of trying; the run existed, and nobody followed it.
    """
    clock = VirtualClock(autojump=True)
    wire = Wire(clock=clock)

    def lost(_) -> CallAnswer:
        clock.oversleep(3600)
        return CallAnswer(lost="reset")

    wire.on_call("POST", "/v1/runs", lost, told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json(last=1)))
    wire.expect_attach(None).send(frames.attached(), frames.end(1)).fin()
    seams = Seams(clock=lambda: clock, writer=InlineWriter)
    async with face.client(URL, ":memory:", transport=wire, _seams=seams) as client:
        assert sequences(await collected(await client.start("work", key="k"))) == [1]
    assert len(wire.calls("POST", "/v1/runs")) == 2


async def test_a_planned_close_is_no_failure(face) -> None:
    """Promises 9 and 10: a stream that is closed at its age limit again and again waits no longer each time."""
    legs = [Leg(cut=(1, 0), closing="max_age")] * 8
    server, args = in_memory(inline=True, story=[Beat(after=60), Beat(do="end", data="ok")], legs=legs)
    facts = Facts()
    async with face.client(journal=":memory:", **args, observer=facts) as client:
        await collected(await client.start("work", key="k"))
    at = [sent.at for sent in server.wire.attaches()]
    assert all(0.25 <= after - before <= 1.0 for before, after in pairwise(at))
    assert facts.count("fast_loop") == 0


async def test_the_head_of_an_answer_has_its_own_limit(face) -> None:
    """Promise 10: no answer within connect_timeout is a loss, whatever was answered before."""

    class StreamOnly(Native):
        ways = ("stream",)

    server, args = in_memory(beats=2, legs=[Leg(delay=None), Leg(delay=4.9)])
    async with face.client(
        journal=":memory:", **args, profile=StreamOnly(), policy=Policy(connect_timeout=5, retry_floor=1)
    ) as client:
        assert sequences(await collected(await client.start("work", key="k"))) == [1, 2, 3, 4]
    first, second = server.wire.attaches()
    assert 6.0 <= second.at - first.at <= 6.5
