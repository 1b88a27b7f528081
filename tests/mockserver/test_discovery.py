"""Discovery is true: for each claim that it can make there is a check here of what the server does, at the number and beyond it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from mockserver_dialogue import Dialogue
from mockserver_stage import OPEN, QUICK, Site
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import Blob, RawEvent, Script, Tool, Wait
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

Check: TypeAlias = Callable[[Site, int], Awaitable[None]]

SSE = {"Accept": "text/event-stream"}
WORK = Script(name="work", steps=(Tool(tool="t", result=1), Wait(ms=3_600_000)))
SIZED = Script(name="sized", clock="virtual", steps=(Blob(bytes=2_000 - len('{"text":""}')),))
OVER = Script(name="over", clock="virtual", steps=(Blob(bytes=2_001 - len('{"text":""}')),))
ALL = {
    "heartbeat_ms": 40, "stream_age_ms": 60, "retention_ms": 5_000, "retention_events": 4, "key_retention_ms": 60_000,
    "event_bytes": 2_000, "body_bytes": 3_000, "streams_per_principal": 2, "runs_per_principal": 3,
}  # fmt: skip


async def told(site: Site) -> dict[str, Any]:
    return (await site.get("/.well-known/reattach")).json


async def opened(site: Site) -> dict[str, Any]:
    run = await site.run({"input": {"scenario": "open"}})
    await site.until_head(run["id"], 3)
    return run


async def heartbeat_ms(site: Site, stated: int) -> None:
    run = await opened(site)
    exchange = site.attach(run["id"], "?after=tail")
    attached = await exchange.block()
    assert attached.json["heartbeat_ms"] == stated
    async with asyncio.timeout(stated / 1000 + 5):  # a second is the page's tolerance, the rest a busy machine's
        assert (await exchange.line()).startswith(":")


async def stream_age_ms(site: Site, stated: int) -> None:
    run = await opened(site)
    blocks = await site.follow(run["id"])
    assert blocks[-1].json == {"reason": "max_age"}


async def retention_ms(site: Site, stated: int) -> None:
    run = await opened(site)
    site.clock[0] += stated
    await site.append(run["id"], "young")
    assert len((await site.get(f"/v1/runs/{run['id']}/events")).json["events"]) == 4
    site.clock[0] += 1
    page = await site.get(f"/v1/runs/{run['id']}/events?after=earliest")
    assert [event["data"]["name"] for event in page.json["events"]] == ["young"]


async def retention_events(site: Site, stated: int) -> None:
    run = await opened(site)
    await site.append(run["id"], *"abcdef")
    kept = (await site.get(f"/v1/runs/{run['id']}/events?after=earliest")).json["events"]
    assert [event["data"]["name"] for event in kept] == list("abcdef")[-stated:]


async def key_retention_ms(site: Site, stated: int) -> None:
    first = await site.create(key="kept")
    await site.until_settled(first.json["id"])
    site.clock[0] += stated
    assert (await site.create(key="kept")).json["id"] == first.json["id"]


async def event_bytes(site: Site, stated: int) -> None:
    assert (await site.settled({"input": {"scenario": "sized"}}))["status"] == "completed"
    failed = await site.settled({"input": {"scenario": "over"}})
    assert failed["error"]["code"] == "event_too_large"


async def body_bytes(site: Site, stated: int) -> None:
    for more, status in ((0, 201), (1, 413)):
        body = b'{"input":"' + b"x" * (stated + more - 12) + b'"}'
        assert (await site.call("POST", "/v1/runs", {"Idempotency-Key": f"b{more}"}, body)).status == status


async def streams_per_principal(site: Site, stated: int) -> None:
    run = await opened(site)
    streams = [site.attach(run["id"], "?after=tail") for _ in range(stated)]
    assert [(await stream.started())[0] for stream in streams] == [200] * stated
    assert (await site.get(f"/v1/runs/{run['id']}/events", SSE)).code == "overloaded"
    for stream in streams:
        await stream.close()


async def runs_per_principal(site: Site, stated: int) -> None:
    held = [await opened(site) for _ in range(stated)]
    assert (await site.create()).code == "overloaded"
    for run in held:
        await site.call("POST", f"/v1/runs/{run['id']}/cancel")


CHECKS: dict[str, Check] = {
    each.__name__: each
    for each in (
        heartbeat_ms, stream_age_ms, retention_ms, retention_events, key_retention_ms, event_bytes, body_bytes,
        streams_per_principal, runs_per_principal,
    )
}  # fmt: skip


@pytest.mark.parametrize("limit", CHECKS)
async def test_a_stated_limit_holds_at_its_number_and_beyond(sites, limit):
    """RS-84, RS-32, RS-44: each alone in force, as discovery states it; the others are none, or what they are by default."""
    clock = [1_000_000_000_000]
    site = await sites(QUICK, OPEN, SIZED, OVER, limits=Limits(**{limit: ALL[limit]}), now=lambda: clock[0])
    site.clock = clock
    stated = (await told(site))["limits"]
    assert set(stated) == set(CHECKS), "a limit that is stated and not checked"
    assert stated[limit] == ALL[limit]
    await CHECKS[limit](site, stated[limit])


async def test_a_server_that_forgets_with_its_process_does_not_say_that_it_is_durable(sites):
    """RS-84: it is pollable and resumable while it lives, and says no more."""
    site = await sites(QUICK, log=MemoryLog())
    claims = await told(site)
    assert (claims["levels"], claims["durability"]) == (["pollable", "resumable"], "memory")
    await polls_and_resumes(site)


async def polls_and_resumes(site: Site) -> None:
    run = await site.settled({"input": {"scenario": "quick"}})
    assert (await site.get(f"/v1/runs/{run['id']}")).json["status"] == "completed"
    assert len(await site.follow(run["id"], f"?after={run['epoch']}.3")) == 1 + run["last_sequence"] - 3


async def test_a_server_that_says_durable_and_effect_safe_is(sites, tmp_path):
    """RS-84, RS-44, RS-61, RS-62: after another process took the log: same events, the key known, effects once, the run goes on."""
    first = await sites(WORK, QUICK, log=SqliteLog(tmp_path / "log.db"))
    claims = await told(first)
    assert claims["levels"] == ["pollable", "resumable", "durable", "effect_safe"]
    assert claims["durability"] == "power"  # tests/system/test_synced_before_shown.py watches that
    run = await first.run(key="k")
    await first.until_head(run["id"], 4)
    before = (await first.get(f"/v1/runs/{run['id']}/events")).body
    await first.close()
    second = await sites(WORK, QUICK, log=SqliteLog(tmp_path / "log.db"))
    assert await told(second) == claims
    assert (await second.get(f"/v1/runs/{run['id']}/events")).body == before
    assert (await second.create(key="k")).json["id"] == run["id"]
    counts = await second.engine.log.counts()
    assert (counts.runs, counts.effects) == (1, 1)
    await second.append(run["id"], "goes on")
    await second.call("POST", f"/v1/runs/{run['id']}/cancel")
    assert (await second.until_settled(run["id"]))["status"] == "cancelled"
    await polls_and_resumes(second)


@pytest.mark.parametrize("deterministic", [True, False])
async def test_deterministic_is_what_two_servers_show(sites, deterministic):
    """RS-84: the same creates give the same bytes exactly if it says so."""
    bodies = []
    for _ in range(2):
        site = await sites(QUICK, deterministic=deterministic)
        assert (await told(site))["deterministic"] is deterministic
        run = await site.settled()
        bodies.append((await site.get(f"/v1/runs/{run['id']}/events")).body)
    assert (bodies[0] == bodies[1]) is deterministic


async def test_every_endpoint_leads_where_it_says(sites):
    """RS-84: under the prefix too where it is mounted."""
    site = await sites(
        QUICK, Script(name="tool", clock="virtual", steps=(Tool(tool="t"), RawEvent(type="x"))), root_path="/agent"
    )
    ends = {name: path.removeprefix("/agent") for name, path in (await told(site))["endpoints"].items()}
    assert set(ends) == {"runs", "sessions", "operations", "socket"}
    body = b'{"input":{"scenario":"tool"},"session_id":"s"}'
    made = await site.call("POST", ends["runs"], {"Idempotency-Key": "k"}, body)
    assert made.status == 201
    run = await site.until_settled(made.json["id"])
    assert (await site.get(f"{ends['runs']}/{run['id']}")).json["id"] == run["id"]
    assert (await site.get(f"{ends['sessions']}/s")).json["last_run_id"] == run["id"]
    events = (await site.get(f"{ends['runs']}/{run['id']}/events")).json["events"]
    operation = next(event["data"]["operation_id"] for event in events if event["type"] == "tool.call")
    assert (await site.get(f"{ends['operations']}/{operation}")).json["status"] == "committed"
    dialogue = await Dialogue(site, path=ends["socket"]).opened()
    dialogue.say("resume", run_id=run["id"], cursor="tail")
    assert (await dialogue.message())["type"] == "resume_ok"


async def test_the_protocol_that_is_stated_is_the_one_that_is_spoken(sites):
    site = await sites()
    run = await site.settled()
    attached = (await site.follow(run["id"]))[0]
    assert (await told(site))["protocol"] == attached.json["protocol"] == 1
