"""What a right server does in each place where a mutant goes wrong: one short question for each, asked over HTTP.

A probe takes a site and raises `AssertionError` where the server is wrong. `PROBES` has one for each mutant.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from mockserver_stage import Block, Exchange, Site
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.library import Library
from reattach_mockserver.scenarios.parse import loads_script
from reattach_mockserver.scenarios.script import Limits, RawEvent, Say, Script, Wait
from reattach_mockserver.settings import Settings

Probe: TypeAlias = Callable[[Site], Awaitable[None]]

MOMENT = 0.5
"""Seconds in which what a right server does at once is there; a probe fails without it."""

LONG = Script(name="long", clock="virtual", steps=tuple(RawEvent(type="note", data={"n": n}) for n in range(60)))
SHORT = Script(name="short", clock="virtual", steps=(Say(text="one – two 🙂 three"),))
OPEN = Script(name="open", steps=(RawEvent(type="note", data={"n": 0}), Wait(ms=3_600_000)))
BEATING = Script(name="beating", limits=Limits(heartbeat_ms=30), steps=OPEN.steps)
BRIEF = Script(name="brief", limits=Limits(stream_age_ms=30), steps=OPEN.steps)
TOOLS = loads_script(
    """
reattach: scenario/1
name: tools
clock: virtual
steps:
  - {tool: pay, id: call_1, operation_id: op_1, result: {ok: true}}
  - {tool: pay, id: call_2, operation_id: op_2, result: {ok: true}}
""",
    "tools.yaml",
)
FAILING = loads_script(
    "{reattach: scenario/1, name: failing, clock: virtual, steps: [{end: failed, problem: {code: no, message: no}}]}",
    "f.yaml",
)
ASKING = loads_script(
    """
reattach: scenario/1
name: asking
clock: virtual
steps:
  - ask:
      - {id: act_1, kind: approval, tool: pay, arguments: {}}
      - {id: act_2, kind: approval, tool: pay, arguments: {}}
    approved: []
    rejected: []
""",
    "asking.yaml",
)
SCRIPTS = {each.name: each for each in (SHORT, LONG, OPEN, BEATING, BRIEF, TOOLS, FAILING, ASKING)}
TOKENS = parse_tokens(["anna a1", "anna a2", "bert b1"])


def settings(**more: Any) -> Settings:
    """Return what the server of the probes is told."""
    return Settings(scripts=Library(SCRIPTS), default="short", **more)


def asking_for(name: str) -> dict[str, Any]:
    return {"input": {"scenario": name}}


async def _settled(site: Site, name: str = "short", **headers: str) -> dict[str, Any]:
    """Return a run of a scenario that has settled, by the server's own word."""
    run = (await site.create(asking_for(name), **headers)).json
    async with asyncio.timeout(5):
        while (await site.engine.log.run(run["id"])).status in ("queued", "running"):  # noqa: ASYNC110
            await asyncio.sleep(0)
    found = await site.engine.log.run(run["id"])
    return {**run, "last": found.last_sequence, "epoch": found.epoch}


async def _log(site: Site, run: dict[str, Any]) -> list[bytes]:
    return [event.body for event in await site.engine.log.read(run["id"], 0, 1000, 1 << 24)]


async def _events(exchange: Exchange) -> list[Block]:
    """Return the events of a stream that ends soon."""
    async with asyncio.timeout(MOMENT * 4):
        await exchange.started()
        return [block for block in await exchange.blocks() if block.id is not None]


def _cursor(run: dict[str, Any], sequence: int) -> str:
    return f"{run['epoch']}.{sequence}"


async def _is_read(site: Site, name: str, *afters: int, word: str | None = None) -> None:
    """A settled run's stream has what the log has behind the cursor: same order, same bytes, same ids, and then it ends."""
    run = await _settled(site, name)
    log = await _log(site, run)
    for after in afters:
        headers = {"Last_Event_ID": _cursor(run, after)} if after else {}
        exchange = site.attach(run["id"], **headers)
        events = await _events(exchange)
        assert [(block.id, (block.data or "").encode()) for block in events] == [
            (_cursor(run, number), body) for number, body in enumerate(log[after:], after + 1)
        ]
        assert exchange.complete


async def resume(site: Site) -> None:
    await _is_read(site, "short", 3)


async def whole(site: Site) -> None:
    await _is_read(site, "short", 0)


async def pages(site: Site) -> None:
    await _is_read(site, "long", 0)


async def tools(site: Site) -> None:
    await _is_read(site, "tools", 0)


async def failure(site: Site) -> None:
    await _is_read(site, "failing", 0)


async def second_run(site: Site) -> None:
    await _settled(site)
    await _is_read(site, "short", 0)


async def control_frames(site: Site) -> None:
    run = await _settled(site)
    exchange = site.attach(run["id"])
    await exchange.started()
    attached = await exchange.block()
    assert attached is not None
    assert attached.name == "stream.attached"
    assert attached.id is None
    assert int(attached.retry or 0) < 60_000


async def _code(site: Site, run: dict[str, Any], word: str) -> tuple[int, str]:
    exchange = site.attach(run["id"], Last_Event_ID=word)
    status, _ = await asyncio.wait_for(exchange.started(), MOMENT)
    return status, json.loads(await exchange.rest())["code"] if status >= 400 else ""


async def garbage(site: Site) -> None:
    assert await _code(site, await _settled(site), "seven") == (400, "cursor_malformed")


async def foreign_cursor(site: Site) -> None:
    other = await _settled(site)
    assert await _code(site, await _settled(site), _cursor(other, 3)) == (400, "cursor_foreign")


async def ahead(site: Site) -> None:
    assert await _code(site, await _settled(site), _cursor(run := await _settled(site), 0)) or run
    run = await _settled(site)
    assert await _code(site, run, _cursor(run, run["last"] + 5)) == (409, "cursor_ahead")


async def expired(site: Site) -> None:
    run = await _settled(site)
    await site.engine.expire(run["id"], 5)
    assert await _code(site, run, _cursor(run, 1)) == (410, "cursor_expired")


async def old_epoch(site: Site) -> None:
    run = await _settled(site)
    await site.engine.new_epoch(run["id"])
    assert await _code(site, run, _cursor(run, 1)) == (410, "epoch_changed")


async def query(site: Site) -> None:
    run = await _settled(site)
    events = await _events(site.attach(run["id"], f"?after={_cursor(run, 3)}"))
    assert events[0].id == _cursor(run, 4)


async def seam(site: Site) -> None:
    run = (await site.create(asking_for("open"))).json
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"])
    await exchange.started()
    found = [await exchange.block() for _ in range(4)]
    for _ in range(20):
        await asyncio.sleep(0)  # the reader waits for what is live
    await site.append(run["id"], "one", "two")
    async with asyncio.timeout(MOMENT):
        found += [await exchange.block() for _ in range(2)]
    numbers = [int((block.id or ".0").rpartition(".")[2]) for block in found if block]
    assert numbers == [0, 1, 2, 3, 4, 5]


async def promptness(site: Site) -> None:
    run = (await site.create(asking_for("open"))).json
    exchange = site.attach(run["id"])
    async with asyncio.timeout(MOMENT):
        await exchange.block()
        assert await exchange.block()


async def heartbeat(site: Site) -> None:
    run = (await site.create(asking_for("beating"))).json
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"])
    await exchange.started()
    for _ in range(4):
        await exchange.block()
    async with asyncio.timeout(MOMENT):
        assert (await exchange.line() or "").startswith(":")


async def closing(site: Site) -> None:
    run = (await site.create(asking_for("brief"))).json
    exchange = site.attach(run["id"])
    async with asyncio.timeout(MOMENT * 4):
        await exchange.started()
        assert (await exchange.blocks())[-1].name == "stream.closing"


async def resume_head(site: Site) -> None:
    run = await _settled(site)
    for headers in ({}, {"Last_Event_ID": _cursor(run, 3)}):
        exchange = site.attach(run["id"], **headers)
        status, found = await exchange.started()
        assert status == 200
        assert found["content-type"] == "text/event-stream"
        assert found["cache-control"] == "no-store, no-transform"
        assert found["x-accel-buffering"] == "no"


async def refusal(site: Site) -> None:
    answer = await site.get("/v1/runs/run_none")
    assert (answer.status, answer.code) == (404, "run_not_found")


async def no_run_made(site: Site) -> None:
    exchange = site.attach("run_none")
    status, _ = await exchange.started()
    assert status == 404
    assert (await site.engine.log.counts()).runs == 0


async def preflight(site: Site) -> None:
    asked = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "GET"}
    answer = await site.call("OPTIONS", "/v1/runs", {**asked, "Access-Control-Request-Headers": "last-event-id"})
    assert "last-event-id" in answer.headers["access-control-allow-headers"].lower()


async def discovery(site: Site) -> None:
    told = (await site.get("/.well-known/reattach")).json
    assert told["durability"] == site.engine.log.durability
    assert told["limits"]["retention_events"] is None
    run = await _settled(site)
    assert (await site.engine.log.run(run["id"])).first_sequence == 1


async def one_key(site: Site) -> None:
    first, second = [await site.create(key="k") for _ in range(2)]
    assert first.json["id"] == second.json["id"]


async def key_at_once(site: Site) -> None:
    answers = await asyncio.gather(*(site.create(key="k") for _ in range(5)))
    assert len({answer.json["id"] for answer in answers}) == 1


async def key_after_end(site: Site) -> None:
    run = await _settled(site, key="k")
    assert (await site.create(asking_for("short"), key="k")).json["id"] == run["id"]


async def other_body(site: Site) -> None:
    await site.create({"input": "a"}, key="k")
    assert (await site.create({"input": "b"}, key="k")).status == 422


async def watching(site: Site) -> None:
    run = await _settled(site, "tools")
    before = await site.engine.log.counts()
    await _events(site.attach(run["id"], Last_Event_ID=_cursor(run, 1)))
    assert await site.engine.log.counts() == before


async def leaving(site: Site) -> None:
    run = (await site.create(asking_for("open"))).json
    exchange = site.attach(run["id"])
    await exchange.started()
    await exchange.close()
    assert (await site.engine.log.run(run["id"])).cancel_reason is None


async def nobody_watches(site: Site) -> None:
    async with asyncio.timeout(MOMENT):
        await _settled(site)


async def status(site: Site) -> None:
    run = await _settled(site)
    for _ in range(3):
        told = (await site.get(f"/v1/runs/{run['id']}")).json
        assert (told["status"], told["last_sequence"]) == ("completed", run["last"])
        assert told["cursor"] == _cursor(run, run["last"])


async def status_without_events(site: Site) -> None:
    run = await _settled(site)
    await site.engine.expire(run["id"], 5)
    assert (await site.get(f"/v1/runs/{run['id']}")).status == 200


async def snapshot(site: Site) -> None:
    run = await _settled(site)
    assert (await site.get(f"/v1/runs/{run['id']}/snapshot")).json["cursor"] == _cursor(run, run["last"])


async def actions(site: Site) -> None:
    run = await _settled(site, "asking")
    found = (await site.get(f"/v1/runs/{run['id']}")).json["required_actions"]
    assert [action["id"] for action in found] == ["act_1", "act_2"]


async def cancel(site: Site) -> None:
    run = (await site.create(asking_for("open"))).json
    answers = [await site.call("POST", f"/v1/runs/{run['id']}/cancel") for _ in range(2)]
    assert all(answer.status in (200, 202) for answer in answers)
    assert (await site.engine.log.run(run["id"])).cancel_reason == "requested"


async def others_run(site: Site) -> None:
    run = await _settled(site, Authorization="Bearer a1")
    assert (await site.get(f"/v1/runs/{run['id']}", {"Authorization": "Bearer b1"})).status == 404


async def renewed_token(site: Site) -> None:
    run = await _settled(site, Authorization="Bearer a1")
    assert (await site.get(f"/v1/runs/{run['id']}", {"Authorization": "Bearer a2"})).status == 200


WITH_TOKENS = frozenset({"has-one-principal", "binds-to-token"})

PROBES: dict[str, Probe] = {
    "asks-for-days": control_frames,
    "beats-with-ids": heartbeat,
    "begins-live": whole,
    "binds-to-token": renewed_token,
    "buffers": promptness,
    "cancels-nothing": cancel,
    "checks-then-inserts": key_at_once,
    "claims-too-much": discovery,
    "closes-in-silence": closing,
    "closes-inside-event": whole,
    "contradicts-its-stream": status,
    "creates-on-attach": no_run_made,
    "ends-at-limit": whole,
    "ends-when-left": leaving,
    "fails-second-cancel": cancel,
    "forgets-key-at-end": key_after_end,
    "forgets-with-events": status_without_events,
    "goes-back": status,
    "has-no-discovery": discovery,
    "has-no-heartbeat": heartbeat,
    "has-no-preflight": preflight,
    "has-one-principal": others_run,
    "hides-failure": failure,
    "hides-what-is-ahead": ahead,
    "ignores-body": other_body,
    "ignores-cursor": resume,
    "ignores-key": one_key,
    "ignores-query": query,
    "inclusive-resume": resume,
    "jumps-over-expired": expired,
    "keeps-five": discovery,
    "leaves-ids-out": tools,
    "lists-one-action": actions,
    "loses-at-page-edge": pages,
    "loses-at-seam": seam,
    "may-be-buffered": resume_head,
    "may-be-cached": resume_head,
    "mixes-runs": second_run,
    "moves-by-control": control_frames,
    "numbers-per-connection": resume,
    "refuses-all-alike": refusal,
    "refuses-with-200": refusal,
    "renders-again": resume,
    "reorders-producers": tools,
    "repeats-at-seam": seam,
    "resumes-at-tail": resume,
    "resumes-with-nothing": resume,
    "sends-nul": whole,
    "sends-page-on-resume": resume_head,
    "serves-old-epoch": old_epoch,
    "settles-late": status,
    "settles-twice": whole,
    "skips-one": resume,
    "snapshot-is-stale": snapshot,
    "spoils-characters": whole,
    "status-stands-still": status,
    "stays-open": whole,
    "swaps-on-replay": resume,
    "takes-foreign": foreign_cursor,
    "takes-garbage": garbage,
    "waits-for-reader": nobody_watches,
    "withholds-end": whole,
    "works-for-watchers": watching,
}
"""Mutant → the probe that must find it."""
ALSO: dict[str, set[str]] = {
    "begins-live": {"failure", "heartbeat", "pages", "seam", "second_run", "tools"},
    "buffers": {"heartbeat", "seam"},
    "closes-inside-event": {"closing", "failure", "heartbeat", "pages", "resume", "seam", "second_run", "tools"},
    "ends-at-limit": {"closing", "heartbeat", "pages", "resume", "seam", "second_run", "tools"},
    "forgets-key-at-end": {"one_key", "other_body"},
    "ignores-cursor": {"ahead", "foreign_cursor", "garbage", "old_epoch", "query"},
    "ignores-key": {"key_after_end", "key_at_once", "other_body"},
    "inclusive-resume": {"query"},
    "keeps-five": {"control_frames", "pages", "query", "resume", "resume_head", "second_run", "tools", "whole"},
    "moves-by-control": {"failure", "pages", "query", "resume", "seam", "second_run", "tools", "whole"},
    "numbers-per-connection": {"query"},
    "refuses-all-alike": {"ahead", "expired", "foreign_cursor", "garbage", "no_run_made", "old_epoch", "other_body"},
    "refuses-with-200": {"ahead", "expired", "foreign_cursor", "garbage", "no_run_made", "old_epoch", "other_body"},
    "resumes-at-tail": {"ahead", "expired", "foreign_cursor", "old_epoch", "query"},
    "resumes-with-nothing": {"query"},
    "sends-nul": {"failure", "pages", "query", "resume", "seam", "second_run", "tools"},
    "sends-page-on-resume": {"query", "resume"},
    "serves-old-epoch": {"ahead"},
    "settles-twice": {"failure", "pages", "resume", "second_run", "tools"},
    "skips-one": {"query"},
    "spoils-characters": {"resume", "second_run"},
    "stays-open": {"closing", "failure", "pages", "query", "resume", "second_run", "tools", "watching"},
    "swaps-on-replay": {"query"},
    "takes-foreign": {"ahead", "old_epoch"},
    "waits-for-reader": {
        "actions",
        "ahead",
        "control_frames",
        "discovery",
        "expired",
        "failure",
        "foreign_cursor",
        "garbage",
        "key_after_end",
        "old_epoch",
        "pages",
        "query",
        "resume",
        "resume_head",
        "second_run",
        "snapshot",
        "status",
        "status_without_events",
        "tools",
        "watching",
        "whole",
    },
    "withholds-end": {"failure", "pages", "resume", "second_run", "tools"},
}
"""What a mutant fails besides its own probe: questions whose answer its one wrong decision is a part of."""
