"""Promise 3: once, in the server's order."""

import pytest

from client_stage import collected, in_memory, sequences
from reattach import errors
from reattach.testing import Beat, Leg, Wire, frames, told
from reattach.testing.memory_server import URL

pytestmark = pytest.mark.anyio

WHOLE = [1, 2, 3, 4, 5]


@pytest.mark.parametrize("how", ["fin", "reset", "stall"])
@pytest.mark.parametrize("block", range(1, 6))
async def test_cut_anywhere_each_event_comes_once_and_in_order(face, block, how):
    server, args = in_memory(legs=[Leg(cut=(block, 0), how=how)])
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        events = await collected(run)
    assert sequences(events) == WHOLE
    assert not any(event.redelivered for event in events)
    assert [event.id for event in events] == [logged.id for logged in server.run.log]


async def test_an_overlapping_replay_repeats_nothing(face):
    _, args = in_memory(legs=[Leg(cut=(4, 0)), Leg(again=3)])
    async with face.client(journal=":memory:", **args) as client:
        assert sequences(await collected(await client.start("work", key="k"))) == WHOLE


async def test_the_cursor_asked_after_is_the_last_committed_event(face):
    server, args = in_memory(legs=[Leg(cut=(4, 0), how="reset")], inline=True)
    async with face.client(journal=":memory:", **args) as client:
        await collected(await client.start("work", key="k"))
    assert [sent.after for sent in server.wire.attaches()] == [None, "e1.3"]


async def test_the_same_number_with_another_payload_is_a_conflict(face):
    """Never dropped in silence, and the journal is as it was."""
    _, args = in_memory(inline=True)
    wire = Wire(clock=args["_seams"].clock())
    wire.on_call("GET", "/v1/runs/run_1", told({"id": "run_1", "status": "running", "epoch": "e1", "last_sequence": 2}))
    wire.expect_attach(after=None).send(frames.attached(), frames.event(1), frames.event(2)).reset()
    wire.expect_attach(after="e1.2").send(frames.attached(2), frames.event(2, data={"text": "other"}))
    async with face.client(URL, ":memory:", transport=wire, _seams=args["_seams"]) as client:
        run = client.attach("run_1")
        shown = []
        with pytest.raises(errors.EventConflict, match=r"e1\.2") as caught:
            await collected(run, into=shown)
        assert sequences(shown) == [1, 2]
        assert caught.value.cursor == "e1.2"
        assert caught.value.run_id == "run_1"


async def test_a_message_whose_deltas_came_before_a_cut_is_not_told_twice(face):
    """`message.completed` adds its text only where no delta of it came: also when the deltas came over an earlier connection."""
    story = [
        Beat(data={"message_id": "m1", "text": "Hello "}),
        Beat(data={"message_id": "m1", "text": "world"}),
        Beat(type="message.completed", data={"message_id": "m1", "role": "assistant", "text": "Hello world"}),
        Beat(type="message.completed", data={"message_id": "m2", "role": "assistant", "text": "!"}),
        Beat(do="end"),
    ]
    for block in range(2, 6):
        _, args = in_memory(story=story, legs=[Leg(cut=(block, 0), how="reset")])
        async with face.client(journal=":memory:", **args) as client:
            run = await client.start("work", key="k")
            text = "".join([event.text async for event in run])
            assert text == (await run.view()).text == "Hello world!", f"cut after block {block}"


async def test_a_new_process_does_not_tell_it_twice_either(face, journal):
    story = [
        Beat(data={"message_id": "m1", "text": "Hello "}),
        Beat(type="message.completed", data={"message_id": "m1", "role": "assistant", "text": "Hello "}, after=5),
        Beat(do="end"),
    ]
    _, args = in_memory(story=story)
    async with (
        face.client(journal=journal, **args) as client,
        client.attach(await client.start("work", key="k")) as run,
    ):
        first = await collected(run, 2)
    async with face.client(journal=journal, **args) as client:
        rest = await collected(await client.start("work", key="k"))
    assert "".join(event.text for event in first + rest) == "Hello "
