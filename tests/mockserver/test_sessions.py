"""A session and its runs: one after the other, each seen by whoever comes next."""

import pytest

from mockserver_stage import OPEN, QUICK
from reattach_mockserver.library import Library
from reattach_mockserver.scenarios.ready import load_ready

pytestmark = pytest.mark.anyio


async def listed(site, session):
    return (await site.get(f"/v1/sessions/{session}/runs")).json["runs"]


async def test_a_session_of_one_that_completes_one_that_is_continued_and_one_that_fails(sites, a_log):
    """All three and the continuation are listed in order, each as it is by id, with who continues whom."""
    site = await sites(*(load_ready(name) for name in ("hello", "approval", "failure")), log=a_log)
    runs = [await site.settled({"input": {"scenario": "hello"}, "session_id": "s"})]
    runs.append(await site.settled({"input": {"scenario": "approval"}, "session_id": "s"}))
    yes = [{"action_id": "act_1", "decision": "approve"}]
    runs.append(await site.settled({"continues": runs[1]["id"], "responses": yes}))
    runs.append(await site.settled({"input": {"scenario": "failure"}, "session_id": "s"}))
    found = await listed(site, "s")
    assert [run["id"] for run in found] == [run["id"] for run in runs]
    assert [run["status"] for run in found] == ["completed", "requires_action", "completed", "failed"]
    assert [run["continues"] for run in found] == [None, None, runs[1]["id"], None]
    assert [run["continued_by"] for run in found] == [None, runs[2]["id"], None, None]
    assert found[1]["required_actions"][0]["resolution"] == "approved"
    assert found == [(await site.get(f"/v1/runs/{run['id']}")).json for run in runs]
    assert (await site.get("/v1/sessions/s")).json["last_run_id"] == runs[-1]["id"]


async def test_the_next_turn_sees_the_cancelled_one(sites, a_log):
    """By the call, and by `on_active`: settled, in its place, before the run that follows it."""
    site = await sites(OPEN, QUICK, log=a_log)
    first = await site.run({"input": "x", "session_id": "s"})
    await site.call("POST", f"/v1/runs/{first['id']}/cancel")
    await site.until_settled(first["id"])
    second = await site.run({"input": "y", "session_id": "s"})
    third = await site.run({"input": {"scenario": "quick"}, "session_id": "s", "on_active": "cancel"})
    found = await listed(site, "s")
    assert [run["id"] for run in found] == [first["id"], second["id"], third["id"]]
    assert [run["status"] for run in found[:2]] == ["cancelled", "cancelled"]
    last = [(await site.get(f"/v1/runs/{run['id']}/events")).json["events"][-1] for run in found[:2]]
    assert [event["data"]["reason"] for event in last] == ["requested", "superseded"]


async def test_a_continuation_is_one_of_its_sessions_runs(sites):
    """While it goes on the session is busy with it, for an ordinary run as for whoever supersedes."""
    site = await sites(load_ready("approval"))
    paused = await site.settled({"input": "x", "session_id": "s"})
    yes = [{"action_id": "act_1", "decision": "approve"}]
    after = await site.run({"continues": paused["id"], "responses": yes})
    busy = await site.create({"input": "y", "session_id": "s"})
    assert (busy.status, busy.code, busy.json["run_id"]) == (409, "session_busy", after["id"])
    await site.run({"input": "y", "session_id": "s", "on_active": "cancel"})
    found = await listed(site, "s")
    assert [run["status"] for run in found[:2]] == ["requires_action", "cancelled"]
    assert found[0]["continued_by"] == after["id"]


@pytest.mark.parametrize("decision", ["approve", "reject"])
@pytest.mark.parametrize("name", ["approval", "approvals", "approval-expires", "approval-stale"])
async def test_ready_scenarios_that_pause_can_be_answered(sites, name, decision):
    """Each by what it asks for; those that cannot be approved any more say so, and are left by another run."""
    clock = [1_000_000_000]
    site = await sites(*(load_ready(each) for each in (name, "hello")), now=lambda: clock[0])
    paused = await site.settled({"input": "x", "session_id": "s"})
    assert paused["status"] == "requires_action"
    clock[0] += 60_000
    responses = [
        {"action_id": action["id"], "result": "B-7"}
        if action["kind"] == "client_tool"
        else {"action_id": action["id"], "decision": decision}
        for action in paused["required_actions"]
    ]
    answer = await site.create({"continues": paused["id"], "responses": responses})
    refused = {
        "approval-expires": "action_expired",
        "approval-stale": "approval_stale" if decision == "approve" else None,
    }
    if refused.get(name) is not None:
        assert answer.code == refused[name]
        await site.run({"input": {"scenario": "hello"}, "session_id": "s"})
    else:
        after = await site.until_settled(answer.json["id"])
        assert after["status"] == ("completed" if decision == "approve" else "cancelled")


def test_ready_scenarios_are_listed_as_they_are_found():
    assert {"approval", "approvals", "approval-expires", "approval-stale"} <= set(Library())
