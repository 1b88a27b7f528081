"""How a run ends, on every witness alike; and how a stream may end while its run has not."""

import asyncio

import pytest

from mockserver_dialogue import played
from mockserver_stage import OPEN, PATIENCE, QUICK
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import (
    Action,
    Ask,
    End,
    ExpireTo,
    Problem,
    RawEvent,
    Say,
    Script,
    Status,
    Tool,
    Wait,
)

pytestmark = pytest.mark.anyio

SSE = {"Accept": "text/event-stream"}
SETTLING = {"run.completed", "run.failed", "run.cancelled", "run.paused"}
PROBLEM = Problem(code="card_declined", message="the card was declined")
ENDS = {
    "run.completed": End(result={"ok": True}),
    "run.failed": End(status="failed", problem=PROBLEM),
    "run.cancelled": End(status="cancelled"),
    "run.paused": Ask(actions=(Action(id="a", tool="t"), Action(id="b", tool="t"))),
}


def ending(kind: str) -> Script:
    return Script(name=kind, clock="virtual", steps=(Say(text="one two"), ENDS[kind], Status(text="never")))


@pytest.mark.parametrize("kind", ENDS)
async def test_a_run_has_one_settling_event_and_it_is_the_last_on_every_witness(sites, a_log, kind):
    """RS-48: live, replayed, in a page and on a socket; the status says the same; and the stream ends with it (RS-57)."""
    site = await sites(ending(kind), log=a_log)
    run = await site.run()
    live = [block.json["type"] for block in (await site.follow(run["id"]))[1:]]
    replay = [block.json["type"] for block in (await site.follow(run["id"]))[1:]]
    page = [event["type"] for event in (await site.get(f"/v1/runs/{run['id']}/events")).json["events"]]
    messages, code = await played(site, run["id"])
    socket = [message["event"]["type"] for message in messages[1:]]
    assert live == replay == page == socket
    assert [each for each in live if each in SETTLING] == [kind]
    assert live[-1] == kind
    assert code == 1000
    status = (await site.get(f"/v1/runs/{run['id']}")).json["status"]
    assert status == {"run.paused": "requires_action"}.get(kind, kind.removeprefix("run."))


async def test_the_end_of_a_finished_run_comes_promptly_from_wherever_one_asks(sites):
    """RS-33: from the beginning, the middle and the last event but one the stream ends by itself; at the tail it is 204."""
    site = await sites(QUICK)
    run = await site.settled()
    for after in range(run["last_sequence"]):
        blocks = await site.follow(run["id"], f"?after={run['epoch']}.{after}")
        assert blocks[-1].name == "run.completed"
    answer = await site.get(f"/v1/runs/{run['id']}/events", {**SSE, "Last-Event-ID": run["cursor"]})
    assert answer.status == 204


async def test_a_settled_status_never_changes_and_nobody_goes_back(sites, a_log):
    """RS-51: the status, polled from the create on past a cancel, a restart and new runs: numbers grow, the end stays the end."""
    site = await sites(QUICK, log=a_log)
    run = await site.run({"input": "x", "session_id": "s"})
    seen, over = [run], asyncio.Event()

    async def poll() -> None:
        while not over.is_set():
            seen.append((await site.get(f"/v1/runs/{run['id']}")).json)
            await asyncio.sleep(0)

    polling = asyncio.create_task(poll())
    await site.until_settled(run["id"])
    await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    await site.settled({"input": "y", "session_id": "s"})
    over.set()
    await polling
    await site.engine.restart()
    seen.append((await site.get(f"/v1/runs/{run['id']}")).json)
    order = {"queued": 0, "running": 1, "completed": 2}
    steps = [(order[each["status"]], each["last_sequence"]) for each in seen]
    assert steps == sorted(steps)
    assert seen[-1]["status"] == "completed"


async def test_a_failure_is_an_event_with_its_error_that_can_be_read_again(sites):
    """RS-58: whoever was cut before it gets it by its cursor; the status has the same error."""
    site = await sites(ending("run.failed"))
    run = await site.settled()
    before = f"?after={run['epoch']}.{run['last_sequence'] - 1}"
    for _ in range(2):
        (_, last) = await site.follow(run["id"], before)
        assert last.json["data"] == {"error": {"code": "card_declined", "message": "the card was declined"}}
        assert last.name == "run.failed"
    assert run["error"] == last.json["data"]["error"]


async def test_what_goes_wrong_with_a_stream_is_not_what_goes_wrong_with_its_run(sites):
    """RS-59: refused, cut and closed streams say so in words of their own, and the run goes on; a failed run is an event."""
    site = await sites(OPEN, ending("run.failed"), tokens=parse_tokens(["alice a1"]))
    alice = {"Authorization": "Bearer a1"}
    run = await site.run(**alice)
    await site.until_head(run["id"], 3)
    site.engine.overload(60_000, 503)
    refused = await site.get(f"/v1/runs/{run['id']}/events", {**SSE, **alice})
    assert (refused.status, refused.code) == (503, "overloaded")
    site.engine.overload(-1, 503)
    assert (await site.get(f"/v1/runs/{run['id']}/events", SSE)).status == 401
    closed = site.attach(run["id"], "?after=tail", **alice)
    await closed.block()
    site.engine.hub.close("max_age", run["id"])
    last = await closed.block()
    assert last.name == "stream.closing"
    cut = site.attach(run["id"], "?after=tail", **alice)
    await cut.block()
    site.engine.hub.cut()
    assert await cut.block() is None
    now = (await site.get(f"/v1/runs/{run['id']}", alice)).json
    assert (now["status"], now["error"]) == ("running", None)
    failed = await site.settled({"input": {"scenario": "run.failed"}}, **alice)
    assert failed["error"]["code"] not in (refused.code, last.json["reason"])


@pytest.mark.parametrize("reason", ["max_age", "draining", "epoch_changed", "cursor_expired", "slow_consumer"])
async def test_a_stream_that_is_closed_for_any_reason_does_not_look_like_the_end_of_its_run(sites, reason):
    """RS-49, RS-79: no settling event, the last block says which reason with a hint when to come back, the run is running.

    What was before it is whole, so a client resumes, or learns by the refusal what became of its cursor.
    """
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    exchange = site.attach(run["id"])
    blocks = [await exchange.block() for _ in range(4)]
    match reason:
        case "draining":
            site.engine.drain()
        case "max_age" | "slow_consumer":
            site.engine.hub.close(reason, run["id"])
        case "epoch_changed":
            await site.engine.new_epoch(run["id"])
        case "cursor_expired":
            await site.append(run["id"], *"abc")
            blocks.append(await exchange.block())
            await exchange.close()
            exchange = await overtaken(site, run)
            blocks = [await exchange.block()]
    rest = await exchange.blocks()
    assert exchange.complete, "it was ended in order"
    last = rest[-1]
    assert (last.name, last.json, last.retry, last.id) == ("stream.closing", {"reason": reason}, "1000", None)
    assert not SETTLING & {block.name for block in (*blocks, *rest)}
    assert (await site.get(f"/v1/runs/{run['id']}")).json["status"] == "running"
    again = await site.get(f"/v1/runs/{run['id']}/events?after={run['epoch']}.3")
    expected = {"epoch_changed": "epoch_changed", "cursor_expired": "cursor_expired"}.get(reason)
    assert again.json.get("code") == expected


async def overtaken(site, run):
    """Return a stream whose replay is being overtaken by trimming: one that reads slowly, while everything goes."""
    await site.append(run["id"], *(f"n{number}" for number in range(600)))
    exchange = site.attach(run["id"])
    await exchange.started()
    await exchange.chunk()
    exchange._buffer = b"event: stream.attached\n\n"
    await site.engine.expire(run["id"], 600)
    return exchange


async def test_status_and_result_outlive_the_events(sites):
    """RS-34: with all events gone the run still says what it came to, and what it said."""
    script = Script(name="s", clock="virtual", steps=(Say(text="one two"), End(result={"ok": True})))
    site = await sites(script)
    run = await site.settled()
    trimmed = await site.engine.expire(run["id"], run["last_sequence"] + 1)
    assert trimmed.first_sequence == run["last_sequence"] + 1
    now = (await site.get(f"/v1/runs/{run['id']}")).json
    assert (now["status"], now["result"]) == ("completed", {"ok": True})
    assert (await site.get(f"/v1/runs/{run['id']}/snapshot")).json["messages"][0]["text"] == "one two"
    assert (await site.get(f"/v1/runs/{run['id']}/events", SSE)).code == "cursor_expired"


async def test_a_cancel_needs_no_connection_and_its_end_is_in_the_log(sites):
    """RS-53: recorded though its answer is lost, with nobody attached; sent again it is answered; a resume brings the end."""
    site = await sites(OPEN)
    run = await site.run()
    await site.until_head(run["id"], 3)
    lost = site.send("POST", f"/v1/runs/{run['id']}/cancel")
    await lost.started()
    await lost.close()
    again = await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    assert again.status in (200, 202)
    await site.until_settled(run["id"])
    blocks = await site.follow(run["id"], f"?after={run['epoch']}.3")
    assert [block.name for block in blocks] == ["stream.attached", "run.cancelled"]
    assert (await site.call("POST", f"/v1/runs/{run['id']}/cancel")).status == 200


async def test_reconnecting_makes_no_work(sites):
    """RS-38, RS-39, RS-45: with nobody, and with a reader that breaks off after each event: same events, same effects."""
    tools = (Tool(tool="charge", takes_ms=2, result=1), RawEvent(type="note"), Tool(tool="mail", takes_ms=2, result=2))
    site = await sites(Script(name="s", steps=(*tools, Wait(ms=5), *tools)))
    alone = await site.settled()
    before = await site.engine.log.counts()
    run = await site.run()
    seen = []
    while not seen or seen[-1].json["type"] not in SETTLING:
        exchange = site.attach(run["id"], f"?after={run['epoch']}.{len(seen)}")
        await exchange.block()
        seen.append(await exchange.block())
        await exchange.close()
    after = await site.engine.log.counts()
    assert (after.events - before.events, after.effects - before.effects) == (before.events, before.effects)
    assert (after.effect_attempts, after.runs) == (after.effects, 2)
    watched, unwatched = [(await site.get(f"/v1/runs/{each['id']}/events")).json["events"] for each in (run, alone)]
    assert [(event["type"], event["data"].get("tool")) for event in watched] == [
        (event["type"], event["data"].get("tool")) for event in unwatched
    ]


async def test_a_run_that_waits_for_its_time_completes_with_nobody_there(sites, tmp_path):
    """RS-40: created and never read; it is driven by the server, on a log that outlives the process too."""
    site = await sites(
        Script(name="s", steps=(Wait(ms=10), Tool(tool="t", result=1), Wait(ms=10))), log=SqliteLog(tmp_path / "log.db")
    )
    run = await site.run()
    async with asyncio.timeout(PATIENCE):
        while (await site.engine.log.run(run["id"])).status != "completed":  # noqa: ASYNC110 (nobody is to be told: no reader)
            await asyncio.sleep(0)
    assert site.engine.hub.readers(run["id"]) == 0
    assert (await site.engine.log.counts()).effects == 1


async def test_a_log_that_was_trimmed_while_the_run_played_still_ends_loudly(sites):
    """RS-31: what is gone is answered as gone, with the oldest kept and where the snapshot is; nothing begins there in silence."""
    steps = (Say(text="one two"), ExpireTo(sequence=5), Status(text="x"))
    site = await sites(Script(name="s", clock="virtual", steps=steps))
    run = await site.settled()
    for query in ("", f"?after={run['epoch']}.0", f"?after={run['epoch']}.3"):
        answer = await site.get(f"/v1/runs/{run['id']}/events{query}", SSE)
        assert (answer.status, answer.code, answer.json["first_sequence"]) == (410, "cursor_expired", 5)
        assert (await site.get(answer.json["snapshot"])).json["cursor"] == run["cursor"]
    assert (await site.follow(run["id"], f"?after={run['epoch']}.4"))[1].json["sequence"] == 5
