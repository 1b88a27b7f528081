"""What is read by id: status, pages, the long poll, the snapshot, sessions, a run by its key."""

import asyncio
import json

import pytest

from mockserver_stage import OPEN, QUICK, quiet
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.scenarios.script import Action, Ask, End, ExpireTo, Problem, RawEvent, Say, Script, Tool, Wait

pytestmark = pytest.mark.anyio

MEMBERS = {
    "id", "session_id", "epoch", "status", "first_sequence", "last_sequence", "cursor", "created_at", "ended_at",
    "required_actions", "result", "error", "release", "continues", "continued_by", "metadata",
}  # fmt: skip


async def test_a_run_has_all_its_members(sites):
    site = await sites()
    run = await site.settled()
    assert set(run) == MEMBERS
    assert (run["cursor"], run["status"]) == (f"{run['epoch']}.7", "completed")
    assert run["ended_at"] >= run["created_at"]


@pytest.mark.parametrize(
    ("end", "status", "result", "error"),
    [
        (End(result={"ok": True}), "completed", {"ok": True}, None),
        (End(status="failed", problem=Problem(code="c", message="m")), "failed", None, {"code": "c", "message": "m"}),
        (End(status="cancelled"), "cancelled", None, None),
    ],
)
async def test_a_settled_run_says_what_it_came_to(sites, end, status, result, error):
    site = await sites(Script(name="s", clock="virtual", steps=(end,)))
    run = await site.settled()
    assert (run["status"], run["result"], run["error"]) == (status, result, error)
    last = (await site.get(f"/v1/runs/{run['id']}/events")).json["events"][-1]
    assert last["type"] == f"run.{status}"


async def test_an_unchanged_run_is_304(sites):
    site = await sites()
    run = await site.settled()
    path = f"/v1/runs/{run['id']}"
    tag = (await site.get(path)).headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = await site.get(path, {"If-None-Match": known})
        assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", tag)
    assert (await site.get(path, {"If-None-Match": '"other"'})).status == 200


async def test_the_tag_changes_with_every_event(sites):
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    path = f"/v1/runs/{run['id']}"
    tag = (await site.get(path)).headers["etag"]
    await site.append(run["id"], "x")
    assert (await site.get(path, {"If-None-Match": tag})).status == 200


async def test_status_is_never_behind_what_a_stream_has_shown(sites):
    """RS-50, RS-52: after each block, the status names at least its sequence, and settled with the last."""
    site = await sites(QUICK)
    run = await site.run()
    exchange = site.attach(run["id"])
    await exchange.block()
    while (block := await exchange.block()) is not None:
        now = (await site.get(f"/v1/runs/{run['id']}")).json
        assert now["last_sequence"] >= block.json["sequence"]
        if block.name == "run.completed":
            assert now["status"] == "completed"


async def test_a_page_says_where_to_go_on(sites):
    site = await sites()
    run = await site.settled()
    seen, after = [], ""
    while True:
        page = (await site.get(f"/v1/runs/{run['id']}/events?limit=3{after}")).json
        assert (page["epoch"], page["status"], page["last_sequence"]) == (run["epoch"], "completed", 7)
        if not page["events"]:
            break
        seen += [event["sequence"] for event in page["events"]]
        after = f"&after={page['next']}"
    assert seen == [1, 2, 3, 4, 5, 6, 7]
    assert page["next"] == run["cursor"], "an empty page says so too"
    assert page["cursor_id"] is not None


async def test_a_page_has_a_hundred_events_unless_asked(sites):
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    await site.append(run["id"], *(str(n) for n in range(1_200)))
    path = f"/v1/runs/{run['id']}/events"
    assert len((await site.get(path)).json["events"]) == 100
    assert len((await site.get(path + "?limit=1000")).json["events"]) == 1_000


async def test_a_long_poll_answers_with_the_next_event(sites):
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.send("GET", f"/v1/runs/{run['id']}/events?after=tail&wait_ms=99999999")
    await site.until(lambda: site.engine.hub.readers(run["id"]) == 1)
    await site.append(run["id"], "x")
    page = json.loads(await exchange.rest())
    assert [event["sequence"] for event in page["events"]] == [4]
    assert page["next"] == f"{run['epoch']}.4"


async def test_a_long_poll_is_empty_when_its_time_is_up(sites):
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    page = (await site.get(f"/v1/runs/{run['id']}/events?after={run['epoch']}.3&wait_ms=20")).json
    assert (page["events"], page["next"], page["status"]) == ([], f"{run['epoch']}.3", "running")
    assert site.engine.hub.readers(run["id"]) == 0


async def test_a_long_poll_at_a_settled_end_answers_at_once(sites):
    site = await sites()
    run = await site.settled()
    async with asyncio.timeout(5):
        page = (await site.get(f"/v1/runs/{run['id']}/events?after=tail&wait_ms=30000")).json
    assert (page["events"], page["status"]) == ([], "completed")


async def test_a_long_poll_whose_log_is_replaced_is_refused(sites):
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.send("GET", f"/v1/runs/{run['id']}/events?after=tail&wait_ms=30000")
    await site.until(lambda: site.engine.hub.readers(run["id"]) == 1)
    await site.engine.new_epoch(run["id"])
    status, _ = await exchange.started()
    assert (status, json.loads(await exchange.rest())["code"]) == (410, "epoch_changed")


async def test_a_snapshot_is_the_fold_up_to_its_cursor(sites):
    """RS-27: fold of the snapshot plus what follows it is the fold of all; at every head of a run."""
    script = Script(
        name="s",
        clock="virtual",
        steps=(
            Say(text="one two"),
            Tool(tool="t", id="c1", arguments={"a": 1}, result={"b": 2}),
            Tool(tool="u", id="c2", error=Problem(code="no", message="no")),
            Wait(ms=1),
        ),
    )
    site = await sites(script)
    run = await site.settled()
    snapshot = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json
    assert (snapshot["cursor"], snapshot["sequence"], snapshot["epoch"]) == (run["cursor"], 10, run["epoch"])
    assert snapshot["status"] == "completed"
    assert snapshot["messages"] == [{"message_id": "msg_0", "role": "assistant", "text": "one two", "completed": True}]
    calls = snapshot["tool_calls"]
    assert [(call["call_id"], call.get("result"), call.get("error")) for call in calls] == [
        ("c1", {"b": 2}, None),
        ("c2", None, {"code": "no", "message": "no"}),
    ]
    assert calls[0]["arguments"] == {"a": 1}
    last = (await site.get(f"/v1/runs/{run['id']}/events")).json["events"][-1]
    assert snapshot["cursor_id"] == last["id"]


async def test_a_snapshot_in_mid_message_holds_its_text_so_far(sites):
    site = await sites(Script(name="s", steps=(Say(text="one two"), Wait(ms=3_600_000))))
    run = await site.run()
    await site.until_head(run["id"], 4)
    snapshot = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json
    text = "".join(
        event["data"]["text"]
        for event in (await site.get(f"/v1/runs/{run['id']}/events")).json["events"][: snapshot["sequence"]]
        if event["type"] == "message.delta"
    )
    assert snapshot["messages"][0]["text"] == text


async def test_a_snapshot_outlives_the_events_it_was_made_of(sites):
    """RS-34: status and snapshot are whole though the log has been trimmed."""
    site = await sites(Script(name="s", clock="virtual", steps=(Say(text="one two"), ExpireTo(sequence=6))))
    run = await site.settled()
    snapshot = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json
    assert snapshot["messages"][0]["text"] == "one two"
    assert (run["first_sequence"], run["status"]) == (6, "completed")


async def test_events_after_a_snapshot_are_kept(sites):
    """A minute from when it was handed out, whatever retention says."""
    site = await sites(quiet(retention_events=2))
    run = await site.run()
    await site.until_head(run["id"], 3)
    cursor = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json["cursor"]
    await site.append(run["id"], *"abcdefgh")
    await site.engine.expire(run["id"], 9)
    page = (await site.get(f"/v1/runs/{run['id']}/events?after={cursor}")).json
    assert [event["sequence"] for event in page["events"]] == [4, 5, 6, 7, 8, 9, 10, 11]


async def test_a_foreign_event_of_our_type_does_not_upset_the_snapshot(sites):
    steps = (RawEvent(type="message.delta", data={"text": 7}), RawEvent(type="tool.call", data={"call_id": None}))
    site = await sites(Script(name="s", clock="virtual", steps=steps))
    run = await site.settled()
    snapshot = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json
    assert (snapshot["messages"], snapshot["tool_calls"]) == ([], [])


async def test_a_paused_run_lists_all_its_actions_everywhere(sites):
    """RS-55: in status, snapshot and replay, each with the event that it came from."""
    actions = (
        Action(id="act_1", tool="restart", arguments={"service": "shop"}, expires_in_ms=600_000),
        Action(id="act_2", tool="mail", kind="client_tool", thread="sub"),
    )
    site = await sites(Script(name="s", clock="virtual", steps=(Ask(actions=actions),)))
    run = await site.settled()
    events = (await site.get(f"/v1/runs/{run['id']}/events")).json["events"]
    asked = {event["data"]["action"]["id"]: event for event in events if event["type"] == "action.required"}
    assert events[-1]["type"] == "run.paused"
    assert events[-1]["data"]["required_actions"] == run["required_actions"]
    assert [action["source_event_id"] for action in run["required_actions"]] == [
        asked["act_1"]["id"],
        asked["act_2"]["id"],
    ]
    assert (await site.get(f"/v1/runs/{run['id']}/snapshot")).json["required_actions"] == run["required_actions"]
    first, second = run["required_actions"]
    assert (first["kind"], first["thread"], second["thread"]) == ("approval", None, "sub")
    assert first["expires_at"] > run["ended_at"]
    assert len({first["operation_id"], second["operation_id"]}) == 2
    blocks = await site.follow(run["id"])
    assert blocks[-1].name == "run.paused", "a pause settles the run: its stream ends"


async def test_an_expired_action_expires_the_pause(sites):
    """All its actions read `expired`, at the time of the call, and stay so though a new run comes."""
    actions = (Action(id="a", tool="t", expires_in_ms=0), Action(id="b", tool="t"))
    site = await sites(Script(name="s", clock="virtual", steps=(Ask(actions=actions),)))
    run = await site.settled({"input": 1, "session_id": "s"})
    await site.run({"input": 2, "session_id": "s"})
    now = (await site.get(f"/v1/runs/{run['id']}")).json
    assert [action["resolution"] for action in now["required_actions"]] == ["expired", "expired"]


async def test_a_run_is_found_by_its_key(sites):
    site = await sites(tokens=parse_tokens(["alice a1", "bob b1"]))
    alice, bob = {"Authorization": "Bearer a1"}, {"Authorization": "Bearer b1"}
    made = await site.create(key="k", **alice)
    found = await site.get("/v1/runs?idempotency_key=k", alice)
    assert [run["id"] for run in found.json["runs"]] == [made.json["id"]]
    assert (await site.get("/v1/runs?idempotency_key=k", bob)).json == {"runs": []}
    assert (await site.get("/v1/runs?idempotency_key=", alice)).json == {"runs": []}
    assert (await site.get("/v1/runs", alice)).code == "invalid_request"


async def test_a_session_lists_its_runs_oldest_first(sites):
    site = await sites(QUICK)
    ids = [(await site.settled({"input": n, "session_id": "s"}))["id"] for n in range(102)]
    session = (await site.get("/v1/sessions/s")).json
    assert (session["id"], session["last_run_id"]) == ("s", ids[-1])
    first = (await site.get("/v1/sessions/s/runs")).json
    second = (await site.get(f"/v1/sessions/s/runs?after={first['next']}")).json
    assert [run["id"] for run in first["runs"] + second["runs"]] == ids
    assert (first["next"], second["next"]) == (ids[99], None)
    assert (await site.get("/v1/sessions/s/runs?after=nonsense")).code == "invalid_request"


async def test_two_principals_may_use_one_session_name(sites):
    """B56: neither sees, nor is held up by, the other's."""
    site = await sites(OPEN, tokens=parse_tokens(["alice a1", "bob b1"]))
    alice, bob = {"Authorization": "Bearer a1"}, {"Authorization": "Bearer b1"}
    mine = await site.run({"input": 1, "session_id": "s"}, **alice)
    assert (await site.get("/v1/sessions/s", bob)).code == "session_not_found"
    theirs = await site.run({"input": 1, "session_id": "s"}, **bob)
    listed = (await site.get("/v1/sessions/s/runs", alice)).json["runs"]
    assert [run["id"] for run in listed] == [mine["id"]] != [theirs["id"]]


async def test_retention_by_time_lets_old_events_go(sites):
    """RS-32: What is older than stated is refused as expired; what is younger is there; the status stays."""
    clock = [1_000_000]
    site = await sites(quiet(retention_ms=60_000), now=lambda: clock[0])
    run = await site.run()
    await site.until_head(run["id"], 3)
    clock[0] += 60_000
    await site.append(run["id"], "four")
    path = f"/v1/runs/{run['id']}"
    assert (await site.get(path)).json["first_sequence"] == 1, "exactly as old as stated is kept"
    clock[0] += 1
    now = (await site.get(path)).json
    assert (now["first_sequence"], now["last_sequence"], now["status"]) == (4, 4, "running")
    refused = await site.get(f"{path}/events?after={run['epoch']}.2")
    assert (refused.code, refused.json["first_sequence"]) == ("cursor_expired", 4)
    clock[0] += 60_000
    assert (await site.get(path)).json["first_sequence"] == 5, "all are gone"
    page = (await site.get(f"{path}/events?after={run['epoch']}.4")).json
    assert (page["events"], page["cursor_id"] is None) == ([], False)


async def test_events_after_a_snapshot_are_kept_for_a_minute_and_no_longer(sites):
    clock = [1_000_000]
    site = await sites(quiet(retention_ms=10), now=lambda: clock[0])
    run = await site.run()
    await site.until_head(run["id"], 3)
    cursor = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json["cursor"]
    await site.append(run["id"], "four")
    clock[0] += 59_999
    assert len((await site.get(f"/v1/runs/{run['id']}/events?after={cursor}")).json["events"]) == 1
    clock[0] += 1
    assert (await site.get(f"/v1/runs/{run['id']}/events?after={cursor}")).code == "cursor_expired"
