"""Mixed versions: a server of an older text and one of a newer text both work; what an older one cannot prove is said once."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest

from client_stage import Facts, collected, sequences
from reattach.testing import InlineWriter, Seams, VirtualClock, Wire, frames, told
from reattach.testing.memory_server import URL

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def following(face, wire: Wire, clock: VirtualClock):
    facts = Facts()
    async with face.client(
        URL, ":memory:", transport=wire, observer=facts, _seams=Seams(clock=lambda: clock, writer=InlineWriter)
    ) as client:
        yield client, facts


def without(block: bytes, *names: str) -> bytes:
    """The block of an older server: some members are not there."""
    lines = block.decode().split("\n")
    for at, line in enumerate(lines):
        if line.startswith("data: "):
            value = {name: each for name, each in json.loads(line[6:]).items() if name not in names}
            lines[at] = "data: " + frames.compact(value)
    return "\n".join(lines).encode()


def scripted(**status) -> tuple[Wire, VirtualClock]:
    clock = VirtualClock(autojump=True)
    wire = Wire(clock=clock)
    wire.on_call("POST", "/v1/runs", told(frames.run_json(), 201))
    wire.on_call("GET", "/v1/runs/run_1", told(frames.run_json(last=1, **status)))
    return wire, clock


async def test_a_server_of_an_older_text_works_and_its_doubts_are_said_once(face) -> None:
    """Issue 4, 12: no protocol, no cursor_id, no prev_id: followed over three connections, each doubt told one time."""
    wire, clock = scripted()
    old = ("protocol", "cursor_id")
    for after in range(2):
        wire.expect_attach(None if not after else f"e1.{after}").send(
            without(frames.attached(after), *old), without(frames.event(after + 1), "prev_id")
        ).reset()
    wire.expect_attach("e1.2").send(without(frames.attached(2), *old), without(frames.end(3), "prev_id")).fin()
    async with following(face, wire, clock) as (client, facts):
        assert sequences(await collected(await client.start("work", key="k"))) == [1, 2, 3]
    doubts = [fact.detail for fact in facts.told if fact.name == "unproven"]
    assert len(doubts) == len(set(doubts)) == 3
    assert any("protocol" in doubt for doubt in doubts)
    assert any("cursor" in doubt for doubt in doubts)
    assert any("predecessor" in doubt for doubt in doubts)


async def test_a_server_of_this_text_leaves_nothing_unproven(face) -> None:
    """Issue 4, 12: nobody is told of doubts that there are not."""
    wire, clock = scripted()
    wire.expect_attach(None).send(frames.attached(), frames.event(1), frames.end(2)).fin()
    async with following(face, wire, clock) as (client, facts):
        await collected(await client.start("work", key="k"))
    assert facts.count("unproven") == 0


async def test_a_server_of_a_newer_text_works(face) -> None:
    """Issue 4, 12: unknown members, types, statuses, control frames, blocks and reasons pass; the version is told once."""
    wire, clock = scripted(status="dreaming", mood={"deep": [1]})
    newer = frames.attached(protocol=2, cursor_hash="x")
    odd = frames.block('{"what":"ever"}', event="stream.weather") + frames.block("no json", event="later.thing")
    event = frames.event(1, type="picture.drawn", data={"pixels": 3}, colour="red")
    wire.expect_attach(None).send(newer, odd, event, frames.closing("moonrise")).fin()
    wire.expect_attach("e1.1").send(frames.attached(1, protocol=2), frames.end(2)).fin()
    async with following(face, wire, clock) as (client, facts):
        run = await client.start("work", key="k")
        assert (await run.status()) == "unknown"
        events = await collected(run)
    assert [(each.type, each.kind) for each in events] == [("picture.drawn", "other"), ("run.completed", "end")]
    doubts = [fact.detail for fact in facts.told if fact.name == "unproven"]
    assert len(doubts) == 1
    assert "version 2" in doubts[0]
