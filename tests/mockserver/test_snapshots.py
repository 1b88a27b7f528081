"""Deltas, snapshots and the fold: one state, however it is come by."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mockserver_stage import OPEN
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.scenarios.script import (
    Action,
    Ask,
    End,
    Parallel,
    Release,
    Say,
    Script,
    Status,
    Tool,
    Wait,
)

pytestmark = pytest.mark.anyio

BUSY = Script(
    name="busy",
    steps=(
        Say(text="one two three", every_ms=2),
        Parallel(branches=((Say(text="left side"), Tool(tool="t", takes_ms=2, result=1)), (Say(text="right side"),))),
        Status(text="nearly"),
        Release(release="r2"),
        Say(text="the end", every_ms=1),
        Ask(actions=(Action(id="a", tool="t"), Action(id="b", kind="client_tool", tool="u"))),
    ),
)


def fold(events: list[dict[str, Any]], state: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what the events amount to, on top of a state; written from the protocol's page, apart from the server's own."""
    state = state or {"status": "queued", "messages": {}, "calls": {}, "actions": {}, "folded": {}}
    for event in events:
        data = event["data"]
        match event["type"]:
            case "run.started":
                state["status"] = "running"
            case "message.delta":
                message = state["messages"].setdefault(data["message_id"], {"pieces": {}, "text": None})
                message["pieces"][data["index"]] = data["text"]
            case "message.completed":
                state["messages"].setdefault(data["message_id"], {"pieces": {}, "text": None})["text"] = data["text"]
            case "tool.call" | "tool.result":
                state["calls"].setdefault(data["call_id"], {}).update(data)
            case "action.required":
                state["actions"][data["action"]["id"]] = data["action"]
            case "run.paused":
                state["status"] = "requires_action"
            case "run.completed":
                state["status"] = "completed"
    return state


def shown(state: dict[str, Any], texts: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a fold in the form of a snapshot; `texts` is what messages had already."""
    messages = []
    for message_id, message in state["messages"].items():
        pieces = "".join(message["pieces"][index] for index in sorted(message["pieces"]))
        text = message["text"] if message["text"] is not None else (texts or {}).get(message_id, "") + pieces
        messages.append((message_id, text, message["text"] is not None))
    return {
        "status": state["status"],
        "messages": sorted(messages),
        "tool_calls": sorted(state["calls"].values(), key=json.dumps),
        "actions": sorted(state["actions"]),
    }


def read(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {
        "status": snapshot["status"],
        "messages": sorted((each["message_id"], each["text"], each["completed"]) for each in snapshot["messages"]),
        "tool_calls": sorted(snapshot["tool_calls"], key=json.dumps),
        "actions": sorted(action["id"] for action in snapshot["required_actions"]),
    }


class Watched(MemoryLog):
    """Appends one by one, and lets somebody look after each."""

    look: Callable[[str], Awaitable[None]]

    async def append(self, run_id, writer, entries, *, keep=None):
        stored = ()
        for entry in entries:
            record, one = await super().append(run_id, writer, [entry], keep=keep)
            stored += one
            await self.look(run_id)
        return record, stored


async def test_a_snapshot_taken_in_a_burst_is_the_fold_of_all_up_to_its_cursor(sites):
    """RS-27: at each head of a run; it states its cursor and the id there, and what follows it can be read."""
    log = Watched()
    site = await sites(BUSY, log=log)
    taken = []

    async def look(run_id: str) -> None:
        taken.append((await site.get(f"/v1/runs/{run_id}/snapshot")).json)

    log.look = look
    run = await site.settled()
    log = (await site.get(f"/v1/runs/{run['id']}/events?limit=1000")).json["events"]
    assert [snapshot["sequence"] for snapshot in taken] == list(range(2, run["last_sequence"] + 1))
    for snapshot in taken:
        sequence = snapshot["sequence"]
        assert snapshot["cursor"] == f"{run['epoch']}.{sequence}"
        assert snapshot["cursor_id"] == log[sequence - 1]["id"]
        assert read(snapshot) == shown(fold(log[:sequence]))
        rest = (await site.get(f"/v1/runs/{run['id']}/events?limit=1000&after={snapshot['cursor']}")).json
        assert rest["events"] == log[sequence:]


async def test_the_pieces_that_a_cut_reader_put_together_are_the_message_that_is_kept(sites):
    """RS-25: over cuts after every event, by replay and by snapshot."""
    site = await sites(BUSY)
    run = await site.settled()
    pieces: dict[str, str] = {}
    whole: dict[str, str] = {}
    for after in range(run["last_sequence"]):
        exchange = site.attach(run["id"], f"?after={run['epoch']}.{after}")
        await exchange.block()
        event = (await exchange.block()).json
        await exchange.close()
        if event["type"] == "message.delta":
            name = event["data"]["message_id"]
            pieces[name] = pieces.get(name, "") + event["data"]["text"]
        elif event["type"] == "message.completed":
            whole[event["data"]["message_id"]] = event["data"]["text"]
    snapshot = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json
    assert pieces == whole == {each["message_id"]: each["text"] for each in snapshot["messages"]}
    assert len(whole) == 4


async def test_an_event_that_is_applied_twice_changes_nothing(sites):
    """RS-26: payloads say what is so from now on, and a piece says which it is."""
    site = await sites(BUSY)
    run = await site.settled()
    events = (await site.get(f"/v1/runs/{run['id']}/events?limit=1000")).json["events"]
    once = shown(fold(events))
    assert shown(fold([event for event in events for _ in range(2)])) == once
    assert shown(fold([*events, *events])) == once


async def test_a_snapshot_of_a_run_that_has_just_begun_is_good_to_go_on_from(sites):
    """RS-27: at a cursor of its own, before there is anything to show."""
    site = await sites(OPEN)
    run = await site.run()
    snapshot = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json
    assert snapshot["sequence"] >= 1
    await site.until_head(run["id"], 3)
    rest = (await site.get(f"/v1/runs/{run['id']}/events?after={snapshot['cursor']}")).json["events"]
    assert [event["sequence"] for event in rest] == list(range(snapshot["sequence"] + 1, 4))


async def test_each_pending_action_is_there_wherever_the_reader_was_cut(sites):
    """RS-55, B70: several at once, cut at each: in status, snapshot and replay, with the event that each came from."""
    script = Script(
        name="s", steps=(Ask(actions=tuple(Action(id=f"a{n}", tool="t") for n in range(3))), End(), Wait(ms=1))
    )
    site = await sites(script)
    run = await site.settled()
    expected = [action["source_event_id"] for action in run["required_actions"]]
    assert len(set(expected)) == 3
    for after in range(run["last_sequence"]):
        blocks = (await site.follow(run["id"], f"?after={run['epoch']}.{after}"))[1:]
        last = blocks[-1].json
        assert [action["source_event_id"] for action in last["data"]["required_actions"]] == expected
        asked = [block.json["id"] for block in blocks if block.name == "action.required"]
        assert asked == expected[max(0, after - 2) :]
    snapshot = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json
    assert [action["source_event_id"] for action in snapshot["required_actions"]] == expected
