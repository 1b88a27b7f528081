"""`GET /v1/operations/{id}`: what the authority knows of a side effect, also where the log of the run does not."""

import asyncio

import pytest

from mockserver_stage import QUICK, quiet
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import Action, Ask, End, Problem, Script, Tool, Wait

pytestmark = pytest.mark.anyio

TOOLS = Script(
    name="tools",
    steps=(
        Tool(tool="mail", operation_id="op_mail", result={"sent": True}),
        Tool(tool="charge", operation_id="op_charge", reversible=False, external=True, result=None),
        Tool(tool="book", operation_id="op_book", error=Problem(code="full", message="no seat")),
        Tool(tool="slow", operation_id="op_slow", takes_ms=3_600_000, external=True, result={}),
    ),
)
ASK = Script(
    name="ask",
    clock="virtual",
    steps=(
        Ask(
            actions=(
                Action(id="a", tool="restart", operation_id="op_restart"),
                Action(id="c", tool="read", operation_id="op_read", kind="client_tool"),
                Action(id="n", tool="never", operation_id="op_never"),
            ),
            approved=(Tool(tool="restart", result="up", reversible=False),),
        ),
    ),
)
YES = [
    {"action_id": "a", "decision": "approve"},
    {"action_id": "c", "result": [1]},
    {"action_id": "n", "decision": "approve"},
]


async def operation(site, name, **headers):
    return (await site.get(f"/v1/operations/{name}", headers)).json


async def statuses(site, *names):
    return [(await operation(site, name))["status"] for name in names]


async def test_an_operation_is_what_the_ledger_knows(sites, a_log):
    """RS-47: found by the id that is in the events; its result is that of the effect."""
    site = await sites(TOOLS, log=a_log)
    run = await site.run()
    await site.until_head(run["id"], 9)
    assert await operation(site, "op_mail") == {
        "id": "op_mail", "tool": "mail", "status": "committed", "reversible": True, "run_id": run["id"],
        "result": {"sent": True},
    }  # fmt: skip
    assert await operation(site, "op_charge") == {
        "id": "op_charge", "tool": "charge", "status": "committed", "reversible": False, "run_id": run["id"],
        "result": None,
    }  # fmt: skip
    assert await statuses(site, "op_book", "op_slow") == ["failed", "pending"]


async def test_what_a_cancel_left_in_doubt_is_unknown(sites, a_log):
    """RS-46: surfaced, under the same word in the inventory and by id; what is outside of us is named besides."""
    site = await sites(TOOLS, log=a_log)
    run = await site.run()
    await site.until_head(run["id"], 9)
    await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    await site.until_settled(run["id"])
    last = (await site.get(f"/v1/runs/{run['id']}/events")).json["events"][-1]
    assert last["data"]["operations"] == {
        "known": ["op_mail", "op_book"], "unknown": ["op_slow"], "irreversible": ["op_charge"],
        "external": ["op_charge", "op_slow"],
    }  # fmt: skip
    assert await statuses(site, "op_mail", "op_book", "op_slow") == ["committed", "failed", "unknown"]


async def test_an_effect_whose_result_was_not_recorded_is_known_all_the_same(sites):
    """RS-46: killed between the effect and its event: the authority has it, and so has whoever asks."""

    class Dying(MemoryLog):
        died = asyncio.Event()

        async def perform(self, effect):
            await super().perform(effect)
            self.died.set()
            await asyncio.get_running_loop().create_future()

    log = Dying()
    site = await sites(TOOLS, log=log)
    run = await site.run()
    await asyncio.wait_for(log.died.wait(), 5)
    assert (await site.get(f"/v1/runs/{run['id']}")).json["last_sequence"] == 3
    assert (await operation(site, "op_mail"))["status"] == "committed"


async def test_a_repeated_call_returns_its_recorded_result(sites, tmp_path):
    """RS-45: the process died before the result was an event; the next one plays another result, and it is not used."""
    old, new = (Script(name="s", steps=(Tool(tool="t", operation_id="op", result=text),)) for text in ("old", "new"))

    class Dying(SqliteLog):
        died = asyncio.Event()

        async def perform(self, effect):
            await super().perform(effect)
            self.died.set()
            await asyncio.get_running_loop().create_future()

    log = Dying(tmp_path / "log.db")
    first = await sites(old, log=log)
    run = await first.run()
    await asyncio.wait_for(log.died.wait(), 5)
    await first.close()
    second = await sites(new, log=SqliteLog(tmp_path / "log.db"))
    await second.until_settled(run["id"])
    results = [e["data"] for e in (await second.get(f"/v1/runs/{run['id']}/events")).json["events"]]
    assert [data["result"] for data in results if "result" in data and "operation_id" in data] == ["old"]
    assert (await operation(second, "op"))["result"] == "old"


async def test_an_operation_that_waits_for_an_answer_is_pending(sites, a_log):
    """Until it is certain: done by the continuation, answered by the client, or never to come."""
    site = await sites(ASK, log=a_log)
    run = await site.settled()
    waiting = await operation(site, "op_restart")
    assert waiting == {
        "id": "op_restart", "tool": "restart", "status": "pending", "reversible": None, "run_id": run["id"],
        "result": None,
    }  # fmt: skip
    after = await site.settled({"continues": run["id"], "responses": YES})
    assert await operation(site, "op_restart") == {
        "id": "op_restart", "tool": "restart", "status": "committed", "reversible": False, "run_id": after["id"],
        "result": "up",
    }  # fmt: skip
    read = await operation(site, "op_read")
    assert (read["status"], read["result"], read["run_id"]) == ("committed", [1], run["id"])
    assert await statuses(site, "op_never") == ["failed"], "approved, and the job ended without it"


async def test_an_approved_operation_is_pending_while_its_continuation_goes_on(sites):
    steps = (Ask(actions=(Action(id="a", tool="t", operation_id="op"),)), Wait(ms=3_600_000))
    site = await sites(Script(name="s", steps=steps))
    run = await site.settled()
    after = await site.run({"continues": run["id"], "responses": [{"action_id": "a", "decision": "approve"}]})
    assert await statuses(site, "op") == ["pending"]
    await site.call("POST", f"/v1/runs/{after['id']}/cancel")
    await site.until_settled(after["id"])
    assert await statuses(site, "op") == ["failed"]


@pytest.mark.parametrize("how", ["rejected", "lapsed", "cancelled", "expired", "failed"])
async def test_what_was_not_allowed_did_not_happen(sites, how):
    clock = [1_000_000]
    asked = Action(id="a", tool="t", operation_id="op", kind="client_tool" if how == "failed" else "approval")
    expiring = Action(id="b", tool="t", expires_in_ms=1_000)
    site = await sites(Script(name="s", steps=(Ask(actions=(asked, expiring)), End())), QUICK, now=lambda: clock[0])
    run = await site.settled({"input": "x", "session_id": "s"})
    assert await statuses(site, "op") == ["pending"]
    word = {"error": {"code": "denied", "message": "no"}} if how == "failed" else {"decision": "reject"}
    match how:
        case "rejected" | "failed":
            both = [{"action_id": "a", **word}, {"action_id": "b", "decision": "approve"}]
            await site.run({"continues": run["id"], "responses": both})
        case "lapsed":
            await site.settled({"input": {"scenario": "quick"}, "session_id": "s"})
        case "cancelled":
            await site.call("POST", f"/v1/runs/{run['id']}/cancel")
        case "expired":
            clock[0] += 1_000
    assert await statuses(site, "op") == ["failed"]


async def test_operations_belong_to_their_principal(sites, a_log):
    """RS-65: another's operation is as absent as none."""
    site = await sites(TOOLS, log=a_log, tokens=parse_tokens(["alice a1", "bob b1"]))
    alice, bob = {"Authorization": "Bearer a1"}, {"Authorization": "Bearer b1"}
    mine = await site.run(**alice)
    await site.until_head(mine["id"], 9)
    theirs = await site.get("/v1/operations/op_mail", bob)
    none = await site.get("/v1/operations/op_none", bob)
    assert (theirs.status, theirs.code, none.code) == (404, "operation_not_found", "operation_not_found")
    assert theirs.body.replace(b"op_mail", b"op_none") == none.body
    run = await site.run(**bob)
    await site.until_head(run["id"], 9)
    assert (await operation(site, "op_mail", **alice))["run_id"] == mine["id"]
    assert (await operation(site, "op_mail", **bob))["run_id"] == run["id"]


async def test_an_operation_outlives_the_process(sites, tmp_path):
    first = await sites(TOOLS, log=SqliteLog(tmp_path / "log.db"))
    run = await first.run()
    await first.until_head(run["id"], 9)
    before = [await operation(first, name) for name in ("op_mail", "op_charge", "op_book", "op_slow")]
    await first.close()
    second = await sites(TOOLS, log=SqliteLog(tmp_path / "log.db"))
    assert [await operation(second, name) for name in ("op_mail", "op_charge", "op_book", "op_slow")] == before


async def test_a_lost_tail_does_not_take_an_effect_back(sites, a_log):
    """The call is in the log no more, and what was done is done."""
    site = await sites(TOOLS, log=a_log)
    run = await site.run()
    await site.until_head(run["id"], 9)
    await site.engine.new_epoch(run["id"], keep=2)
    await site.until_head(run["id"], 9)
    assert await statuses(site, "op_mail", "op_charge", "op_book") == ["committed", "committed", "failed"]
    assert (await site.engine.log.counts()).effects == 2


async def test_discovery_names_where_operations_are(sites):
    """RS-84: the path is there, and leads somewhere."""
    site = await sites(quiet())
    path = (await site.get("/.well-known/reattach")).json["endpoints"]["operations"]
    assert (await site.get(f"{path}/none")).code == "operation_not_found"
