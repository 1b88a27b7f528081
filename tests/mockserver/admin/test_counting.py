"""What the admin interface tells of a server: runs, events, effects, readers, calls."""

import pytest

from mockserver_admin_stage import Hand
from mockserver_stage import OPEN, QUICK
from reattach_mockserver.admin.calls import CALLS
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.scenarios.script import Script, Tool

pytestmark = pytest.mark.anyio

WORK = Script(
    name="work", clock="virtual", steps=(Tool(tool="t", operation_id="op_1", result={"n": 1}), Tool(tool="u"))
)


async def test_counts_are_the_logs_and_the_calls_by_route(sites):
    """A path's own words are never in the list, so no caller can make it grow."""
    site = await sites(WORK)
    hand = Hand(site)
    run = await site.settled()
    before = (await hand.ask("/counts"))["calls"]
    await site.follow(run["id"])
    for _ in range(3):
        await site.get(f"/v1/runs/{run['id']}/snapshot")
    await site.get("/v1/nothing")
    await site.call("BREW", "/v1/runs")
    told = await hand.ask("/counts")
    assert {name: told[name] for name in ("runs", "events", "effects", "effect_attempts", "subscribers")} == {
        "runs": 1, "events": 7, "effects": 2, "effect_attempts": 2, "subscribers": 0,
    }  # fmt: skip
    grown = {route: count - before.get(route, 0) for route, count in told["calls"].items()}
    assert {route: count for route, count in grown.items() if count} == {
        "GET /v1/runs/{run_id}/events": 1,
        "GET /v1/runs/{run_id}/snapshot": 3,
        "GET elsewhere": 1,
        "other /v1/runs": 1,
    }
    assert before["POST /v1/runs"] == 1


async def test_runs_of_everybody_are_listed_page_by_page(sites):
    """With whose it is, its key and its scenario; no token, nor a digest of one."""
    site = await sites(QUICK, OPEN, tokens=parse_tokens(["alice one", "bob two"]))
    first = await site.run(None, Authorization="Bearer one")
    second = await site.run({"input": {"scenario": "open"}}, Authorization="Bearer two")
    hand = Hand(site)
    page = await hand.ask("/runs?limit=1")
    (told,) = page["runs"]
    assert (told["id"], told["principal"], told["scenario"], told["number"]) == (first["id"], "alice", "quick", 1)
    assert told["key"].startswith("key-")
    rest = await hand.ask(f"/runs?after={page['next']}")
    assert ([run["id"] for run in rest["runs"]], rest["next"]) == ([second["id"]], None)
    assert not {"token", "digest"} & told.keys()
    assert (await hand.ask(f"/runs/{second['id']}"))["principal"] == "bob"


async def test_the_log_is_shown_whole_whatever_was_trimmed(sites):
    site = await sites(QUICK)
    run, hand = await site.settled(), Hand(site)
    await hand.do(f"/runs/{run['id']}/trim", keep=0)
    page = await hand.ask(f"/runs/{run['id']}/events?limit=5")
    assert ([event["sequence"] for event in page["events"]], page["next"]) == ([1, 2, 3, 4, 5], 5)
    rest = await hand.ask(f"/runs/{run['id']}/events?after=5")
    assert ([event["sequence"] for event in rest["events"]], rest["next"]) == ([6, 7], None)
    assert (await hand.ask(f"/runs/{run['id']}/events?after=999"))["events"] == []


async def test_effects_are_listed_with_their_attempts(sites):
    """What was done once and tried twice is one effect with two attempts."""
    site = await sites(WORK)
    run, hand = await site.settled(), Hand(site)
    await hand.do(f"/runs/{run['id']}/epoch", keep=3)
    await site.until_settled(run["id"])
    effects = (await hand.ask(f"/runs/{run['id']}/effects"))["effects"]
    assert (effects[0]["operation_id"], effects[0]["attempts"], effects[0]["result"]) == ("op_1", 2, {"n": 1})


async def test_subscribers_are_listed_by_run_and_form(sites):
    """Streams and polls that wait, as long as they do; a reader that has gone is in no list."""
    site = await sites(OPEN)
    hand = Hand(site)
    run = await site.run()
    await site.until_head(run["id"], 3)
    streams = [site.attach(run["id"], "?after=tail") for _ in range(2)]
    for stream in streams:
        await stream.block()
    poll = site.send("GET", f"/v1/runs/{run['id']}/events?after={run['epoch']}.3&wait_ms=30000")
    await site.until(lambda: site.engine.hub.readers(run["id"]) == 3)
    told = (await hand.ask("/subscribers"))["subscribers"]
    expected = {"run_id": run["id"], "principal": "anyone"}
    assert told == [{**expected, "stream": False, "count": 1}, {**expected, "stream": True, "count": 2}]
    assert (await hand.ask(f"/runs/{run['id']}"))["subscribers"] == 3
    assert (await hand.ask("/counts"))["subscribers"] == 3
    for exchange in (*streams, poll):
        await exchange.close()
    assert (await hand.ask("/subscribers"))["subscribers"] == []


async def test_the_index_and_the_readme_name_every_call(sites):
    """Each with its sentence; a call that is not written down is not there for anybody."""
    from pathlib import Path

    import reattach_mockserver.admin as room

    readme = (Path(room.__file__).parent / "README.md").read_text(encoding="utf-8")
    told = (await Hand(await sites()).ask("/"))["calls"]
    assert set(told) == {f"{method} {path}" for path, methods in CALLS.items() for method in methods}
    assert all(told.values())
    assert [call for call in told if f"`{call}`" not in readme] == []
