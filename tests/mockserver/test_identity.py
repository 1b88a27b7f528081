"""What names a run and an event: handed out early, one thing each, good to send back in any way."""

import asyncio
import re
from urllib.parse import quote

import pytest

from mockserver_dialogue import resumed
from mockserver_stage import OPEN, QUICK, quiet
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.scenarios.script import (
    Action,
    Ask,
    Parallel,
    RawEvent,
    Release,
    Say,
    Script,
    Status,
    Tool,
)

pytestmark = pytest.mark.anyio

SSE = {"Accept": "text/event-stream"}
EVERYTHING = Script(
    name="everything",
    clock="virtual",
    steps=(
        Say(text="a b"),
        Parallel(branches=((Tool(tool="t", result=1),), (Tool(tool="u", result=2),))),
        Status(text="same"),
        Status(text="same"),
        Release(release="r2"),
        RawEvent(type="vendor.note", data={"x": 1}),
        RawEvent(type="vendor.note", data={"x": 1}),
        Ask(actions=(Action(id="a", tool="t"),)),
    ),
)
"""An event of every type that a run can have before it is answered; some have equal data."""


async def test_a_create_cut_after_its_head_has_told_which_run_it_made(sites):
    """RS-01: the id is in the head of the answer, before any event, and the run answers to it though no byte more was read."""
    site = await sites(OPEN)
    exchange = site.send("POST", "/v1/runs", {"Idempotency-Key": "k", **SSE}, b'{"input":"x"}')
    status, headers = await exchange.started()
    await exchange.close()
    assert status == 201
    run = (await site.get(headers["location"])).json
    assert headers["location"] == f"/v1/runs/{run['id']}"
    assert run["status"] in ("queued", "running")


async def test_every_connection_and_every_event_name_the_same_run(sites):
    """RS-02: the create, two streams, a page, a socket, and each event on each of them."""
    site = await sites()
    made = await site.settled()
    named = {made["id"]}
    for _ in range(2):
        named |= {block.json["run_id"] for block in await site.follow(made["id"])}
    named |= {event["run_id"] for event in (await site.get(f"/v1/runs/{made['id']}/events")).json["events"]}
    dialogue = await resumed(site, made["id"])
    first, *events = await dialogue.messages()
    named |= {first["run_id"], *(message["event"]["run_id"] for message in events)}
    assert named == {made["id"]}


async def test_every_event_carries_a_cursor_whatever_its_type(sites):
    """RS-03: an id on each block that is an event, tools and notes of others too; `<epoch>.<sequence>` of that very event."""
    site = await sites(EVERYTHING)
    run = await site.settled()
    _, *events = await site.follow(run["id"])
    assert {block.json["type"] for block in events} >= {
        "run.created", "run.started", "message.delta", "message.completed", "tool.call", "tool.result", "status",
        "release.changed", "vendor.note", "action.required", "run.paused",
    }  # fmt: skip
    assert [block.id for block in events] == [f"{run['epoch']}.{block.json['sequence']}" for block in events]


async def test_a_cursor_names_one_event_and_equal_events_have_cursors_of_their_own(sites):
    """RS-05: over replays and a second run of the same scenario no cursor has two texts; two equal notes have two."""
    site = await sites(EVERYTHING)
    told: dict[str, set[str]] = {}
    runs = [await site.settled() for _ in range(2)]
    for run in (*runs, *runs):
        for block in (await site.follow(run["id"]))[1:]:
            told.setdefault(block.id, set()).add(block.data)
    assert all(len(texts) == 1 for texts in told.values())
    assert len(told) == 2 * runs[0]["last_sequence"]
    notes = [text for texts in told.values() for text in texts if '"vendor.note"' in text]
    assert len(set(notes)) == 4


async def test_a_stream_has_the_events_of_its_own_run_only(sites):
    """RS-06, B56: two runs that grow at the same time; live, resumed with its own cursor, and never with the other's."""
    site = await sites(OPEN)
    runs = [await site.run() for _ in range(2)]
    for run in runs:
        await site.until_head(run["id"], 3)
    streams = [site.attach(run["id"], "?after=tail") for run in runs]
    for stream in streams:
        await stream.block()
    for number in range(5):
        for letter, run in zip("ab", runs, strict=True):
            await site.append(run["id"], f"{letter}{number}")
    for letter, run, stream in zip("ab", runs, streams, strict=True):
        marks = [(await stream.block()).json["data"]["name"] for _ in range(5)]
        assert marks == [f"{letter}{number}" for number in range(5)]
        resumed_ = site.attach(run["id"], f"?after={run['epoch']}.5")
        await resumed_.block()
        assert [(await resumed_.block()).json["data"]["name"] for _ in range(3)] == marks[2:]
    for mine, other in (runs, reversed(runs)):
        refused = await site.get(f"/v1/runs/{mine['id']}/events?after={other['epoch']}.4", SSE)
        assert refused.code == "cursor_foreign"


async def test_control_frames_do_not_move_the_cursor(sites):
    """RS-08: neither the first block, nor heartbeats, nor the block before a close has an id; a resume after each goes on."""
    site = await sites(quiet(heartbeat_ms=30))
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"])
    blocks = [await exchange.block() for _ in range(4)]
    assert [block.id for block in blocks] == [None, *(f"{run['epoch']}.{number}" for number in (1, 2, 3))]
    beats = [await exchange.line() for _ in range(3)]
    assert not any(line.startswith("id") for line in beats)
    site.engine.hub.close("max_age", run["id"])
    lines = []
    while (line := await exchange.line()) is not None:
        lines.append(line)
    assert 'data: {"reason":"max_age"}' in lines
    assert not any(line.startswith("id") for line in lines)
    await site.append(run["id"], "next")
    again = site.attach(run["id"], Last_Event_ID=blocks[-1].id)
    assert [(await again.block()).id for _ in range(2)] == [None, f"{run['epoch']}.4"]


async def test_a_cursor_is_there_from_the_first_block(sites):
    """RS-09: cut after it, a client resumes from what it says; so does one that only has the create's answer."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    for query, first in (("", 1), (f"?after={run['epoch']}.2", 3)):
        exchange = site.attach(run["id"], query)
        cursor = (await exchange.block()).json["cursor"]
        await exchange.close()
        page = (await site.get(f"/v1/runs/{run['id']}/events?after={cursor}")).json
        assert [event["sequence"] for event in page["events"]] == list(range(first, 4))
    after_create = (await site.get(f"/v1/runs/{run['id']}/events?after={run['cursor']}")).json["events"]
    assert [event["sequence"] for event in after_create] == list(range(run["last_sequence"] + 1, 4))


async def test_a_cursor_comes_back_unchanged_in_a_header_and_in_an_address(sites):
    """RS-70, RS-71: visible ASCII that no quoting changes, at most 128 bytes; each of a run's ids is taken in both places."""
    site = await sites(EVERYTHING)
    run = await site.settled()
    ids = [block.id for block in (await site.follow(run["id"]))[1:]]
    for cursor in ids[:-1]:
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", cursor)
        assert quote(cursor, safe="") == cursor
        for blocks in (
            await site.follow(run["id"], f"?after={cursor}"),
            await site.follow(run["id"], Last_Event_ID=cursor),
        ):
            assert blocks[0].json["cursor"] == cursor


async def test_a_cursor_grants_nothing_and_tells_nothing(sites):
    """RS-67: with somebody's cursor and run id another principal has no more than without; in it stands nobody's name."""
    site = await sites(QUICK, tokens=parse_tokens(["alice secret-a", "bob secret-b"]))
    alice, bob = {"Authorization": "Bearer secret-a"}, {"Authorization": "Bearer secret-b"}
    run = await site.settled({"input": "x", "session_id": "private-session"}, **alice)
    for cursor in ("", f"?after={run['cursor']}", f"?after={run['epoch']}.1"):
        for form in ({}, SSE):
            with_it = await site.get(f"/v1/runs/{run['id']}/events{cursor}", {**form, **bob})
            without = await site.get("/v1/runs/run_none/events", {**form, **bob})
            assert (with_it.status, with_it.code) == (without.status, without.code) == (404, "run_not_found")
        assert (await site.get(f"/v1/runs/{run['id']}/events{cursor}")).status == 401
    assert not any(word in run["cursor"] for word in ("alice", "secret", "session"))


async def test_a_second_reader_does_not_take_the_place_of_the_first(sites):
    """RS-24: the same cursor attached twice; both go on, so nobody has to be told of a takeover."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    streams = [site.attach(run["id"], Last_Event_ID=f"{run['epoch']}.3") for _ in range(2)]
    for stream in streams:
        await stream.block()
    await site.append(run["id"], "for both")
    names = await asyncio.gather(*(stream.block() for stream in streams))
    assert [block.json["data"]["name"] for block in names] == ["for both"] * 2
