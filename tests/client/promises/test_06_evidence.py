"""Promise 6: an end needs evidence. What a poll did not say is not an end, and no reason to begin again."""

from __future__ import annotations

import pytest

import reattach
from client_stage import collected, held, in_memory, sequences
from reattach.testing import Beat, InlineWriter, Seams, Trip, VirtualClock, Wire, frames, told
from reattach.testing.answers import CallAnswer
from reattach.testing.memory_server import URL

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "trip",
    [Trip(refuse=500), Trip(refuse=502), Trip(lost="after"), Trip(delay=None)],
    ids=["500", "502", "lost", "silent"],
)
async def test_a_poll_that_fails_is_no_end(face, trip: Trip) -> None:
    """Promise 6, B83: the state stays what it was, the run is followed to its own end, and no second one is begun."""
    story = [Beat(), Beat(after=300, do="end", data="ok")]
    server, args = in_memory(inline=True, story=story, statuses=[trip] * 100)
    held(server, args)
    async with face.client(journal=":memory:", **args) as client:
        assert sequences(await collected(await client.start("work", key="k"))) == [1, 2, 3]
    assert len(server.wire.calls("POST", "/v1/runs")) == 1
    assert len(server.wire.calls("GET", "/v1/runs/run_1")) > 3, "it was polled all the time"


@pytest.mark.parametrize(
    "answer",
    [
        told(frames.run_json(last=1, status="melting")),
        CallAnswer(status=200, headers={"content-type": "text/html"}, body=b"<html>maintenance</html>"),
        CallAnswer(status=200, body=b""),
        told({}),
    ],
    ids=["unknown word", "html", "nothing", "no members"],
)
async def test_a_poll_that_says_nothing_known_is_no_end(face, answer) -> None:
    """Promise 6, B83: an unknown word, a page of somebody else, an empty 200."""
    clock = VirtualClock(autojump=True)
    wire = Wire(clock=clock)
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", answer)
    wire.expect_attach(None).send(
        frames.attached(), frames.event(1)
    )  # and then silence: left after 45 s, behind the first poll
    wire.expect_attach("e1.1").send(frames.attached(1), frames.end(2)).fin()
    async with face.client(
        URL, ":memory:", transport=wire, _seams=Seams(clock=lambda: clock, writer=InlineWriter)
    ) as client:
        assert sequences(await collected(await client.start("work", key="k"))) == [1, 2]
    assert len(wire.calls("POST", "/v1/runs")) == 1


@pytest.mark.parametrize(
    "wrong",
    [frames.block("no json", id="e1.2"), frames.event(2, run_id="run_9"), frames.block('{"id":"x"}', id="e1.2")],
    ids=["no json", "another run", "no number"],
)
async def test_what_is_wrong_at_one_cursor_after_each_attach_is_told_the_third_time(face, wrong: bytes) -> None:
    """Promises 9 and 12: an attach does not mend what the server holds there; nothing spins, and the journal is intact."""
    clock = VirtualClock(autojump=True)
    wire = Wire(clock=clock)
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json(last=2)))
    wire.expect_attach(None).send(frames.attached(), frames.event(1), wrong)
    for _ in range(2):
        wire.expect_attach("e1.1").send(frames.attached(1), wrong)
    seen: list[reattach.Event] = []
    async with face.client(
        URL, ":memory:", transport=wire, _seams=Seams(clock=lambda: clock, writer=InlineWriter)
    ) as client:
        run = await client.start("work", key="k")
        with pytest.raises(reattach.RemoteProtocolError, match=r"e1\.1"):
            await collected(run, into=seen)
    assert sequences(seen) == [1]
    assert len(wire.attaches()) == 3


async def test_a_stream_of_another_run_is_not_read(face) -> None:
    """Promise 3: a proxy that mixes answers up shows nobody another run's text."""
    clock = VirtualClock(autojump=True)
    wire = Wire(clock=clock)
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json(last=1)))
    wire.expect_attach(None).send(frames.attached(run_id="run_9"), frames.event(1))
    wire.expect_attach(None).send(frames.attached(), frames.end(1)).fin()
    async with face.client(
        URL, ":memory:", transport=wire, _seams=Seams(clock=lambda: clock, writer=InlineWriter)
    ) as client:
        assert [each.kind for each in await collected(await client.start("work", key="k"))] == ["end"]
    assert len(wire.attaches()) == 2
