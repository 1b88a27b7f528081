"""Cancelling: recorded first, settled soon, one outcome, and an honest list of what was done."""

import asyncio

import pytest

from mockserver_stage import OPEN, QUICK
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import Action, Ask, Script, Tool, Wait

pytestmark = pytest.mark.anyio

BUSY = Script(
    name="busy",
    steps=(
        Tool(tool="mail", operation_id="op_mail", result={"sent": True}),
        Tool(tool="charge", operation_id="op_charge", result={"ok": True}, reversible=False),
        Tool(tool="slow", operation_id="op_slow", takes_ms=3_600_000, result={}),
    ),
)


async def cancel(site, run):
    return await site.call("POST", f"/v1/runs/{run['id']}/cancel")


async def test_a_cancel_settles_the_run_and_lists_its_operations(sites):
    """Known, irreversible, and the tool in flight as unknown: each id in exactly one list."""
    site = await sites(BUSY)
    run = await site.run()
    await site.until_head(run["id"], 7)
    answer = await cancel(site, run)
    assert answer.status == 202
    assert (await site.until_settled(run["id"]))["status"] == "cancelled"
    last = (await site.get(f"/v1/runs/{run['id']}/events")).json["events"][-1]
    assert last["type"] == "run.cancelled"
    assert last["data"] == {
        "reason": "requested",
        "operations": {"known": ["op_mail"], "unknown": ["op_slow"], "irreversible": ["op_charge"], "external": []},
    }
    assert [effect.operation_id for effect in await site.engine.log.effects(run["id"])] == ["op_mail", "op_charge"]


async def test_a_cancel_is_idempotent(sites):
    """RS-53: again while it settles, again after: one settling event."""
    site = await sites(OPEN)
    run = await site.run()
    answers = await asyncio.gather(*(cancel(site, run) for _ in range(5)))
    await site.until_settled(run["id"])
    assert {answer.status for answer in answers} <= {200, 202}
    again = await cancel(site, run)
    assert (again.status, again.json["status"]) == (200, "cancelled")
    kinds = [event["type"] for event in (await site.get(f"/v1/runs/{run['id']}/events")).json["events"]]
    assert kinds.count("run.cancelled") == 1


async def test_a_cancel_after_the_end_changes_nothing(sites):
    site = await sites(QUICK)
    run = await site.settled()
    answer = await cancel(site, run)
    assert (answer.status, answer.json) == (200, run)


async def test_a_cancel_against_completion_has_one_outcome(sites):
    """RS-54: whatever wins, status, stream and log agree, and nothing follows it."""
    site = await sites(QUICK)
    for _ in range(30):
        run = await site.run()
        await cancel(site, run)
        settled = await site.until_settled(run["id"])
        events = (await site.get(f"/v1/runs/{run['id']}/events")).json["events"]
        assert events[-1]["type"] == f"run.{settled['status']}"
        assert sum(event["type"] in ("run.completed", "run.cancelled") for event in events) == 1


async def test_a_recorded_cancel_survives_a_restart(sites, tmp_path):
    """Recorded, then the process is gone before the player saw it: the next one settles the run."""
    first = await sites(OPEN, log=SqliteLog(tmp_path / "log.db"))
    run = await first.run()
    await first.until_head(run["id"], 3)
    await first.engine.log.ask_cancel(run["id"], "requested")
    await first.close()
    second = await sites(OPEN, log=SqliteLog(tmp_path / "log.db"))
    settled = await second.until_settled(run["id"])
    assert settled["status"] == "cancelled"


async def test_the_list_of_operations_is_whole_after_a_restart(sites, tmp_path):
    """What was called before the restart is in the inventory, the dangling call in `unknown`, not repeated."""
    first = await sites(BUSY, log=SqliteLog(tmp_path / "log.db"))
    run = await first.run()
    await first.until_head(run["id"], 7)
    await first.close()
    second = await sites(BUSY, log=SqliteLog(tmp_path / "log.db"))
    await cancel(second, run)
    await second.until_settled(run["id"])
    last = (await second.get(f"/v1/runs/{run['id']}/events")).json["events"][-1]
    assert last["data"]["operations"] == {
        "known": ["op_mail"], "unknown": ["op_slow"], "irreversible": ["op_charge"], "external": [],
    }  # fmt: skip


async def test_cancelling_a_paused_run_resolves_its_actions(sites):
    """It has settled, so 200; its actions read `cancelled`, in status and snapshot alike."""
    site = await sites(Script(name="p", clock="virtual", steps=(Ask(actions=(Action(id="a", tool="t"),)), Wait(ms=1))))
    run = await site.settled()
    answer = await cancel(site, run)
    assert (answer.status, answer.json["status"]) == (200, "requires_action")
    assert answer.json["required_actions"][0]["resolution"] == "cancelled"
    snapshot = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json
    assert snapshot["required_actions"][0]["resolution"] == "cancelled"
