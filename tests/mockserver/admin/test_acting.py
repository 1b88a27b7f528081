"""What the admin interface does to a running server, call by call; clients see it by the protocol's own words."""

import json

import pytest

from mockserver_admin_stage import Hand
from mockserver_stage import OPEN, QUICK, quiet
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import Action, Ask, Repeat, Say, Script, Status, Tool, Wait
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

ASKING = Script(
    name="asking", clock="virtual", steps=(Ask(actions=(Action(id="a", tool="t", expires_in_ms=600_000),)),)
)


async def open_run(sites, *scripts, **settings):
    site = await sites(*(scripts or (OPEN,)), **settings)
    run = await site.run()
    await site.until_head(run["id"], 3)
    return site, Hand(site), run


async def events(site, run, query=""):
    return (await site.get(f"/v1/runs/{run['id']}/events?limit=1000{query}")).json["events"]


async def test_an_event_is_published_into_a_run_and_reaches_its_readers(sites):
    """One more producer: next in order, live on every stream, with its text."""
    site, hand, run = await open_run(sites)
    exchange = site.attach(run["id"], "?after=tail")
    await exchange.block()
    done = await hand.do(f"/runs/{run['id']}/events", type="vendor.note", data={"n": 1}, text="seen")
    block = await exchange.block()
    assert (block.id, block.name) == (done["cursor"], "vendor.note")
    assert (block.json["id"], block.json["data"], block.json["text"]) == (done["id"], {"n": 1}, "seen")
    assert done["sequence"] == 4


async def test_without_a_name_each_publish_is_an_event_and_with_one_only_the_first(sites):
    """A test that repeats a call whose answer it lost does not publish twice."""
    site, hand, run = await open_run(sites)
    path = f"/runs/{run['id']}/events"
    first, second = [await hand.do(path, type="note") for _ in range(2)]
    assert (first["sequence"], second["sequence"]) == (4, 5)
    named = [await hand.do(path, type="note", name="once") for _ in range(2)]
    assert named[0] == named[1]
    assert len(await events(site, run)) == 6


async def test_what_is_published_stays_published_where_the_run_goes_on(sites):
    """A restart plays on after it and appends it no second time; the run's own steps are all there."""
    site, hand, run = await open_run(sites)
    await hand.do(f"/runs/{run['id']}/events", type="note", data={"name": "mine"})
    await hand.do("/restart")
    await hand.do("/advance", ms=3_600_000)
    await site.until_settled(run["id"])
    kinds = [event["type"] for event in await events(site, run)]
    assert kinds == ["run.created", "run.started", "note", "note", "run.completed"]


@pytest.mark.parametrize(
    ("members", "status", "code"),
    [
        ({}, 400, "invalid_request"),
        ({"type": 1}, 400, "invalid_request"),
        ({"type": "a\nb"}, 400, "invalid_request"),
        ({"type": "run.completed"}, 400, "invalid_request"),
        ({"type": "stream.closing"}, 400, "invalid_request"),
        ({"type": "action.required"}, 400, "invalid_request"),
        ({"type": "release.changed"}, 400, "invalid_request"),
        ({"type": "note", "data": [1]}, 400, "invalid_request"),
        ({"type": "note", "text": 1}, 400, "invalid_request"),
        ({"type": "note", "dta": {}}, 400, "invalid_request"),
        ({"type": "note", "data": {"x": "é" * 500}}, 413, "event_too_large"),
    ],
)
async def test_what_is_no_event_is_not_published(sites, members, status, code):
    """Neither one that only the server may append, nor one above the limit, which counts bytes."""
    site, hand, run = await open_run(sites, limits=Limits(event_bytes=1_000))
    answer = await hand.call(
        "POST",
        f"/runs/{run['id']}/events",
        {"Content-Type": "application/json"},
        json.dumps(members, ensure_ascii=False).encode(),
    )
    assert (answer.status, answer.code) == (status, code)
    assert len(await events(site, run)) == 3


async def test_a_settled_run_takes_no_event(sites):
    site = await sites(QUICK)
    run, hand = await site.settled(), Hand(site)
    answer = await hand.post(f"/runs/{run['id']}/events", {"type": "note"})
    assert (answer.status, answer.code) == (409, "run_settled")


async def test_expire_lets_go_of_what_is_before_a_sequence_or_of_all_but_the_newest(sites):
    site, hand, run = await open_run(sites)
    assert (await hand.do(f"/runs/{run['id']}/expire", first=2))["first_sequence"] == 2
    assert (await site.get(f"/v1/runs/{run['id']}/events")).code == "cursor_expired"
    assert (await hand.do(f"/runs/{run['id']}/expire"))["first_sequence"] == 3


async def test_trim_keeps_so_many(sites):
    """0 keeps none: then even the newest cannot be had."""
    _, hand, run = await open_run(sites)
    assert (await hand.do(f"/runs/{run['id']}/trim", keep=2))["first_sequence"] == 2
    assert (await hand.do(f"/runs/{run['id']}/trim", keep=0))["first_sequence"] == 4


async def test_a_reader_that_is_overtaken_by_an_expiry_is_told(sites):
    """One that has not read yet what went is closed with the reason."""
    many = Script(name="many", steps=(Repeat(times=200, steps=(Status(text="x"),)), Wait(ms=3_600_000)))
    site, hand, run = await open_run(sites, many)
    await site.until_head(run["id"], 202)
    exchange = site.attach(run["id"], f"?after={run['epoch']}.0")
    await exchange.started()
    await hand.do(f"/runs/{run['id']}/trim", keep=0)
    blocks = await exchange.blocks()
    assert (blocks[-1].name, blocks[-1].json) == ("stream.closing", {"reason": "cursor_expired"})


async def test_the_epoch_is_rotated_and_may_lose_its_tail(sites):
    site, hand, run = await open_run(sites)
    old = f"{run['epoch']}.2"
    assert (await hand.do(f"/runs/{run['id']}/epoch"))["epoch"] != run["epoch"]
    assert (await site.get(f"/v1/runs/{run['id']}/events?after={old}")).code == "epoch_changed"
    told = await hand.do(f"/runs/{run['id']}/epoch", keep=1)
    assert (told["epoch"].rpartition("-")[2], told["last_sequence"]) == ("3", 1)


async def test_a_token_expires_by_itself_or_by_the_run_that_it_made(sites):
    """Its principal's others stay good."""
    tokens = parse_tokens(["alice one", "alice two", "alice three", "bob four"])
    site = await sites(OPEN, tokens=tokens)
    hand = Hand(site)
    run = await site.run(None, Authorization="Bearer one")

    async def status(token):
        return (await site.get(f"/v1/runs/{run['id']}", {"Authorization": f"Bearer {token}"})).status

    await hand.do("/expire_token", token="two")
    assert [await status(token) for token in ("one", "two", "three")] == [200, 401, 200]
    await hand.do("/expire_token", run_id=run["id"])
    assert [await status(token) for token in ("one", "two", "three")] == [401, 401, 200]


async def test_a_token_that_the_server_does_not_know_cannot_expire(sites):
    """Else a misspelt one would look like a success."""
    _, hand, run = await open_run(sites)
    for members in ({"token": "x"}, {"run_id": run["id"]}):
        answer = await hand.post("/expire_token", members)
        assert (answer.status, answer.code) == (404, "token_unknown")
    for members in ({}, {"token": "x", "run_id": run["id"]}):
        assert (await hand.post("/expire_token", members)).code == "invalid_request"


async def test_a_restart_breaks_streams_and_the_run_goes_on(sites, tmp_path):
    site, hand, run = await open_run(sites, log=SqliteLog(tmp_path / "log.db"))
    exchange = site.attach(run["id"], "?after=tail")
    await exchange.block()
    assert await hand.do("/restart") == {"unfinished": 1}
    await exchange.blocks()
    assert not exchange.complete, "broken off, not ended"
    assert (await site.get(f"/v1/runs/{run['id']}")).json["status"] == "running"


async def test_an_overload_is_begun_and_taken_back(sites):
    """By its status; what is running goes on."""
    site = await sites(OPEN)
    hand = Hand(site)
    await hand.do("/overload", ms=600_000, status=429)
    assert (await site.create()).status == 429
    await hand.do("/overload", ms=600_000)
    assert (await site.create()).status == 503
    await hand.do("/overload", ms=0)
    assert (await site.create()).status == 201


@pytest.mark.parametrize("reason", [None, "draining", "slow_consumer"])
async def test_streams_are_closed_with_a_reason(sites, reason):
    """Of one run, or of all; the count is of those who were asked to leave."""
    site, hand, run = await open_run(sites)
    other = await site.run()
    mine, theirs = site.attach(run["id"], "?after=tail"), site.attach(other["id"], "?after=tail")
    await mine.block()
    await theirs.block()
    given = {} if reason is None else {"reason": reason}
    told = await hand.do(f"/runs/{run['id']}/close_streams", **given)
    assert told == {"closed": 1, "reason": reason or "max_age"}
    assert (await mine.blocks())[-1].json == {"reason": reason or "max_age"}
    assert site.engine.hub.readers(other["id"]) == 1
    assert (await hand.do("/close_streams", **given))["closed"] == 1
    assert (await theirs.blocks())[-1].name == "stream.closing"


async def test_a_release_is_an_event_of_a_running_run(sites):
    site, hand, run = await open_run(sites)
    await hand.do(f"/runs/{run['id']}/release", release="r7")
    assert (await site.get(f"/v1/runs/{run['id']}")).json["release"] == "r7"
    assert (await events(site, run))[-1]["data"] == {"release": "r7"}
    assert (await hand.post(f"/runs/{run['id']}/release", {"release": "r 7"})).code == "invalid_request"
    assert (await hand.post(f"/runs/{run['id']}/release", {})).code == "invalid_request"


async def test_what_a_paused_run_waits_for_expires(sites):
    """An answer then comes too late; a run that does not wait has nothing that could."""
    site = await sites(ASKING, OPEN)
    run, hand = await site.settled(), Hand(site)
    told = await hand.do(f"/runs/{run['id']}/expire_actions")
    assert [action["resolution"] for action in told["required_actions"]] == ["expired"]
    answers = {"continues": run["id"], "responses": [{"action_id": "a", "decision": "approve"}]}
    assert (await site.create(answers)).code == "action_expired"
    other = await site.run({"input": {"scenario": "open"}})
    assert (await hand.post(f"/runs/{other['id']}/expire_actions", {})).code == "not_paused"


async def test_a_run_is_cancelled_whoevers_it_is(sites):
    site = await sites(OPEN, tokens=parse_tokens(["alice one"]))
    run = await site.run(None, Authorization="Bearer one")
    await Hand(site).do(f"/runs/{run['id']}/cancel")
    settled = await site.until_settled(run["id"], {"Authorization": "Bearer one"})
    assert settled["status"] == "cancelled"


async def test_the_clock_moved_forward_ends_a_scenarios_wait(sites):
    """A wait of an hour on the real clock is over; less than it is not."""
    site, hand, run = await open_run(sites)
    assert await hand.do("/advance", ms=3_000_000) == {"ahead_ms": 3_000_000}
    assert (await site.get(f"/v1/runs/{run['id']}")).json["status"] == "running"
    assert await hand.do("/advance", ms=600_000) == {"ahead_ms": 3_600_000}
    assert (await site.until_settled(run["id"]))["status"] == "completed"


async def test_the_clock_moved_forward_brings_each_step_in_its_order(sites):
    """Steps that were an hour apart come one after the other; event times are those of the clock."""
    steps = (
        Status(text="a"),
        Wait(ms=3_600_000),
        Tool(tool="t", takes_ms=3_600_000),
        Wait(ms=3_600_000),
        Say(text="b"),
    )
    site = await sites(Script(name="s", steps=steps))
    run, hand = await site.run(), Hand(site)
    await site.until_head(run["id"], 3)
    await hand.do("/advance", ms=24 * 3_600_000)
    await site.until_settled(run["id"])
    kinds = [event["type"] for event in await events(site, run)]
    assert kinds[2:] == ["status", "tool.call", "tool.result", "message.delta", "message.completed", "run.completed"]


async def test_the_clock_moved_forward_expires_approvals_and_events(sites):
    """Ten minutes of an approval, the retention of a log: without waiting for them."""
    site = await sites(ASKING, quiet(retention_ms=60_000))
    run, hand = await site.settled(), Hand(site)
    other = await site.run({"input": {"scenario": "quiet"}})
    await site.until_head(other["id"], 3)
    await hand.do("/advance", ms=600_001)
    resolved = (await site.get(f"/v1/runs/{run['id']}")).json["required_actions"][0]["resolution"]
    assert resolved == "expired"
    assert (await site.get(f"/v1/runs/{other['id']}/events")).code == "cursor_expired"


async def test_a_pending_approval_becomes_stale_by_the_clock_alone(sites):
    """`release_in_ms` is a time of the server's clock as well."""
    asked = Script(
        name="s", clock="virtual", steps=(Ask(actions=(Action(id="a", tool="t", release_in_ms=3_600_000),)),)
    )
    site = await sites(asked)
    run = await site.settled()
    await Hand(site).do("/advance", ms=3_600_000)
    answers = {"continues": run["id"], "responses": [{"action_id": "a", "decision": "approve"}]}
    assert (await site.create(answers)).code == "approval_stale"


async def test_a_publish_that_a_new_epoch_overtakes_comes_into_it(sites):
    """The writer that it was to append under is another by now: it appends under that one."""
    site, _, run = await open_run(sites)
    before = await site.engine.log.run(run["id"])
    await site.engine.new_epoch(run["id"])
    after, stored = await site.engine.publish(before, "late", "note", {})
    assert (after.epoch.rpartition("-")[2], stored.sequence) == ("2", 4)
