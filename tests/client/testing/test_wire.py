"""The scripted wire keeps the seam's law, and says when the client asks for what the script does not have."""

from __future__ import annotations

import anyio
import pytest

import reattach
from reattach.testing import InlineWriter, Seams, VirtualClock, Wire, frames, refused, told
from reattach.testing.answers import StreamAnswer
from reattach.testing.wire import ScriptError
from reattach.transports.base import Request, WireLost, WireOversize, WireRefused

pytestmark = pytest.mark.anyio
URL = "http://server.test"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def get(path: str, **headers: str) -> Request:
    return Request("GET", URL + path, headers)


async def test_reads_are_those_that_were_scripted() -> None:
    """Bytes go through the real decoder, cut as the test wants."""
    wire = Wire()
    wire.expect_attach().send(b"data: a\n\ndata: b\n\n", reads=(4, 5)).fin()
    stream = await wire.stream(get("/s"), max_event_bytes=100)
    read = [await stream.read() for _ in range(4)]
    assert [None if each is None else [frame.data for frame in each.frames] for each in read] == [
        [],
        ["a"],
        ["b"],
        None,
    ]
    assert read[0] is not None
    assert read[0].growing


async def test_faults_are_the_seams_exceptions() -> None:
    wire = Wire()
    wire.expect_attach().send(b"data: a\n\n").reset("broken")
    wire.expect_attach().send(b"data: " + b"x" * 200 + b"\n\n")
    wire.expect_attach(answer=StreamAnswer(lost="no route", definite=True))
    stream = await wire.stream(get("/s"), max_event_bytes=100)
    await stream.read()
    with pytest.raises(WireLost, match="broken"):
        await stream.read()
    await stream.aclose()
    with pytest.raises(WireLost):
        await stream.read()
    with pytest.raises(WireOversize):
        await (await wire.stream(get("/s"), max_event_bytes=100)).read()
    with pytest.raises(WireLost, match="no route") as lost:
        await wire.stream(get("/s"), max_event_bytes=100)
    assert lost.value.definite
    with pytest.raises(WireRefused):
        await wire.stream(get("/s", x="a\nb"), max_event_bytes=100)


async def test_open_streams_are_counted() -> None:
    wire = Wire()
    bodies = [wire.expect_attach(), wire.expect_attach()]
    one = await wire.stream(get("/s"), max_event_bytes=100)
    two = await wire.stream(get("/s"), max_event_bytes=100)
    assert (wire.open_streams, wire.most_streams) == (2, 2)
    await one.aclose()
    await one.aclose()
    await two.aclose()
    assert (wire.open_streams, wire.most_streams) == (0, 2)
    assert all(body.closed.is_set() for body in bodies)


async def test_a_refusal_is_an_answer_with_a_body() -> None:
    wire = Wire()
    wire.expect_attach(answer=refused(410, "cursor_expired", first_sequence=7))
    stream = await wire.stream(get("/s"), max_event_bytes=100)
    assert stream.status == 410
    assert b'"first_sequence":7' in await stream.body(1000)


async def test_what_the_script_does_not_have_fails_the_test_and_the_client() -> None:
    """Another cursor than the scripted one is named with both."""
    clock = VirtualClock(autojump=True)
    wire = Wire(clock=clock)
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json()))
    wire.expect_attach(after="e1.9")
    seams = Seams(clock=lambda: clock, writer=InlineWriter)
    async with reattach.AsyncClient(URL, ":memory:", transport=wire, _seams=seams) as client:
        run = await client.start("work", key="k1")
        with pytest.raises(reattach.ReattachError, match=r"after None: the script has one after 'e1.9'"):
            async for _ in run:
                pass
    assert [type(fault) for fault in wire.faults] == [ScriptError]


async def test_an_answer_that_never_comes_is_lost_at_the_time_limit() -> None:
    """In virtual time."""
    clock = VirtualClock()
    wire = Wire(clock=clock)
    wire.expect_attach(answer=StreamAnswer(delay=None))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)

        async def asks() -> None:
            with pytest.raises(WireLost, match="10 s"):
                await wire.stream(get("/s"), max_event_bytes=100)
            assert clock.now() == 10.0

        tasks.start_soon(asks)
        await clock.elapse(10.0)
        await clock.elapse(0)
        tasks.cancel_scope.cancel()
