"""How a call is done: once; and what becomes of one of which nobody knows whether it was done."""

import asyncio

import pytest

from agent_stage import ASK, Recorder, Used, data_of, events_of, soon
from mockserver_stage import Site
from reattach_mockserver.agent.loop import AgentWork
from reattach_mockserver.agent.model import Called, Said
from reattach_mockserver.agent.scripted import ScriptedModel
from reattach_mockserver.agent.tool import Happened, NeverWill, Tool, ToolError
from reattach_mockserver.app import create_app
from reattach_mockserver.library import Library
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.settings import Hooks, Settings

pytestmark = pytest.mark.anyio

UNKNOWN = "outcome_unknown"


def calling(tool: Tool) -> AgentWork:
    return AgentWork(model=ScriptedModel([[Called("tool", {"n": 1})], [Said("Done.")]]), tools=[tool])


async def outcome_of(site: Site, run: dict) -> dict:
    (result,) = data_of(await events_of(site, run), "tool.result")
    return {name: result[name] for name in ("result", "error") if name in result}


async def died_in_the_tool(sites, used: Used, **more) -> tuple[Site, dict]:
    """Return a site and its settled run, whose first process died while the tool was at it."""
    site = await sites(works={"agent": calling(Tool(name="tool", run=used, **more))})
    run = await site.run(ASK)
    await soon(used.began.wait())
    await site.engine.restart()
    used.free.set()
    return site, await site.until_settled(run["id"])


@pytest.mark.parametrize(("effect", "attempts"), [("none", [1, 1]), ("ledger", [1, 2]), ("keyed", [1, 2])])
async def test_what_can_be_repeated_is_done_again_under_the_same_operation(sites, effect, attempts):
    """RS-46, RS-47: as a later attempt of the same operation."""
    used = Used("ok", waits=True)
    site, run = await died_in_the_tool(sites, used, effect=effect)
    assert await outcome_of(site, run) == {"result": "ok"}
    assert [use.attempt for use in used.uses] == attempts
    assert len({use.operation_id for use in used.uses}) == 1


async def test_what_cannot_be_repeated_is_surfaced(sites):
    """RS-46: with nobody to ask; the operation stands as unknown for every client, and the model hears of it."""
    used = Used("ok", waits=True)
    site, run = await died_in_the_tool(sites, used)
    assert (await outcome_of(site, run))["error"]["code"] == UNKNOWN
    assert len(used.uses) == 1
    assert (await site.get(f"/v1/operations/{used.uses[0].operation_id}")).json["status"] == "unknown"
    assert run["status"] == "completed"


@pytest.mark.parametrize(
    ("said", "outcome", "uses"),
    [
        (Happened({"at": "noon"}), {"result": {"at": "noon"}}, 1),
        (NeverWill(), {"result": "ok"}, 2),
        (None, {"error": UNKNOWN}, 1),
        (OSError("away"), {"error": UNKNOWN}, 1),
        (Happened({1, 2}), {"error": UNKNOWN}, 1),
    ],
)
async def test_its_authority_is_asked_what_became_of_it(sites, said, outcome, uses):
    """RS-46: it happened; it never will, so it is done; it cannot tell; it cannot be reached; it says what is no JSON."""
    used, asked = Used("ok", waits=True), Used(said)
    site, run = await died_in_the_tool(sites, used, reconcile=asked)
    found = await outcome_of(site, run)
    assert ({"error": found["error"]["code"]} if "error" in found else found) == outcome
    assert len(used.uses) == uses
    assert [use.operation_id for use in asked.uses] == [used.uses[0].operation_id]
    effects = await site.engine.log.effects(run["id"])
    assert len(effects) == ("error" not in found)


async def test_a_call_that_nobody_began_is_done_though_it_cannot_be_repeated(sites):
    """RS-46: the process died between the call's event and its claim: no claim, so nobody can have begun it."""
    used, dead = Used("ok"), asyncio.Event()

    async def reached(run_id: str, point: str) -> None:
        if point.startswith("claim ") and not dead.is_set():
            dead.set()
            await asyncio.Event().wait()

    site = await sites(works={"agent": calling(Tool(name="tool", run=used))}, hooks=Hooks(reached=reached))
    run = await site.run(ASK)
    await soon(dead.wait())
    await site.engine.restart()
    run = await site.until_settled(run["id"])
    assert (await outcome_of(site, run), len(used.uses)) == ({"result": "ok"}, 1)


@pytest.mark.parametrize("point", ["execute", "executed"])
@pytest.mark.parametrize("effect", ["ledger", "keyed"])
async def test_a_replica_that_wakes_finds_its_call_refused(sites, point, effect):
    """RS-46, RS-38: paused before the call or after it, taken over and reconciled meanwhile, it records and publishes nothing."""
    log, asleep, awake = MemoryLog(), asyncio.Event(), asyncio.Event()
    late, now = Used("late"), Used("now")

    async def reached(run_id: str, at: str) -> None:
        if at.startswith(f"{point} "):
            asleep.set()
            await awake.wait()

    first = await sites(
        works={"agent": calling(Tool(name="tool", run=late, effect=effect))}, log=log, hooks=Hooks(reached=reached)
    )
    taking = {"agent": calling(Tool(name="tool", run=now, effect=effect))}
    second = Site(create_app(Settings(scripts=Library(taking), default="agent", log=log)), "")
    run = await first.run(ASK)
    await soon(asleep.wait())
    await second.engine.start()
    run = await second.until_settled(run["id"])
    before = await events_of(second, run)
    awake.set()
    await first.until(lambda: not first.engine.players.playing())
    assert await outcome_of(second, run) == {"result": "now"}
    assert [effect.result for effect in await log.effects(run["id"])] == ['"now"']
    assert await events_of(second, run) == before
    assert [use.attempt for use in (*late.uses, *now.uses)] == [1, 2]
    await second.close()


async def test_a_replica_that_wakes_in_time_has_lost_its_claim_all_the_same(sites):
    """RS-46: the other one has claimed the operation and not done it yet: the late effect is refused, not taken first."""
    log, asleep, awake = MemoryLog(), asyncio.Event(), asyncio.Event()
    late, now = Used("late"), Used("now", waits=True)

    async def reached(run_id: str, at: str) -> None:
        if at.startswith("execute "):
            asleep.set()
            await awake.wait()

    first = await sites(
        works={"agent": calling(Tool(name="tool", run=late, effect="ledger"))}, log=log, hooks=Hooks(reached=reached)
    )
    taking = {"agent": calling(Tool(name="tool", run=now, effect="ledger"))}
    second = Site(create_app(Settings(scripts=Library(taking), default="agent", log=log)), "")
    run = await first.run(ASK)
    await soon(asleep.wait())
    await second.engine.start()
    await soon(now.began.wait())
    awake.set()
    await first.until(lambda: not first.engine.players.playing())
    assert len(late.uses) == 1
    assert await log.effects(run["id"]) == ()
    now.free.set()
    run = await second.until_settled(run["id"])
    assert await outcome_of(second, run) == {"result": "now"}
    await second.close()


async def test_a_tool_that_says_that_it_did_nothing_has_failed(sites):
    """Its words are for the model and for clients; the operation failed, and is not done again."""
    used = Used(ToolError("no_funds", "there is no money"))
    site = await sites(works={"agent": calling(Tool(name="tool", run=used))})
    run = await site.settled(ASK)
    assert await outcome_of(site, run) == {"error": {"code": "no_funds", "message": "there is no money"}}
    assert (await site.get(f"/v1/operations/{used.uses[0].operation_id}")).json["status"] == "failed"
    assert (run["status"], len(used.uses)) == ("completed", 1)


@pytest.mark.parametrize(
    ("effect", "reconcile", "code"),
    [
        ("none", None, "tool_failed"),
        ("ledger", None, "tool_failed"),
        ("once", None, UNKNOWN),
        ("once", NeverWill(), "tool_failed"),
        ("once", Happened(7), None),
        ("once", RuntimeError("x"), UNKNOWN),
    ],
)
async def test_an_exception_leaves_what_acts_outside_in_doubt(sites, effect, reconcile, code):
    """RS-46: it may have been done all the same; an authority is asked. What only counts here, or reads, has failed."""
    used = Used(ConnectionError("/secret/path"))
    asks = None if reconcile is None else Used(reconcile)
    site = await sites(works={"agent": calling(Tool(name="tool", run=used, effect=effect, reconcile=asks))})
    found = await outcome_of(site, await site.settled(ASK))
    assert "secret" not in str(found)
    assert (found == {"result": 7}) if code is None else (found["error"]["code"] == code)
    assert len(used.uses) == 1


@pytest.mark.parametrize(("failures", "code"), [(2, None), (3, UNKNOWN)])
async def test_what_has_a_key_is_called_again_with_it_but_not_for_ever(sites, failures, code, monkeypatch):
    monkeypatch.setattr("reattach_mockserver.agent.calling._PAUSE", 0.001)
    used = Used(*[ConnectionError()] * failures, "ok")
    site = await sites(works={"agent": calling(Tool(name="tool", run=used, effect="keyed"))})
    found = await outcome_of(site, await site.settled(ASK))
    assert (found == {"result": "ok"}) if code is None else (found["error"]["code"] == code)
    assert [use.attempt for use in used.uses] == [1, 2, 3]
    assert len({use.operation_id for use in used.uses}) == 1


async def test_a_result_that_is_no_json_leaves_the_call_in_doubt(sites):
    site = await sites(works={"agent": calling(Tool(name="tool", run=Used({1, 2})))})
    assert (await outcome_of(site, await site.settled(ASK)))["error"]["code"] == UNKNOWN


async def test_a_tool_that_is_not_there_fails_its_call(sites):
    model = Recorder([[Called("other")], [Said("Done.")]])
    site = await sites(works={"agent": AgentWork(model=model)})
    run = await site.settled(ASK)
    assert (await outcome_of(site, run))["error"]["code"] == "unknown_tool"
    assert model.asked[1][-1].error["code"] == "unknown_tool"


async def test_a_plain_function_holds_up_nobody(sites):
    """It is run in a thread: the loop is free while it waits."""
    loop, began = asyncio.get_running_loop(), asyncio.Event()

    def waits(use):
        return asyncio.run_coroutine_threadsafe(done(), loop).result(10)

    async def done():
        began.set()
        return "from the loop"

    site = await sites(works={"agent": calling(Tool(name="tool", run=waits, effect="none"))})
    assert await outcome_of(site, await site.settled(ASK)) == {"result": "from the loop"}


@pytest.mark.parametrize(("effect", "outcome"), [("none", "ok"), ("ledger", "ok"), ("keyed", "ok"), ("once", UNKNOWN)])
async def test_a_claim_of_our_own_that_came_late_leaves_the_run_ours(sites, effect, outcome):
    """A storage may carry out a claim after it was given up: the call is reconciled once more, and the run goes on."""
    log, late = MemoryLog(), []

    async def reached(run_id: str, point: str) -> None:
        if point.startswith("executed ") and not late:
            run = await log.run(run_id)
            late.append(await log.claim(run_id, run.writer, used.uses[0].operation_id))

    used = Used("ok")
    tool = Tool(name="tool", run=used, effect=effect)
    site = await sites(works={"agent": calling(tool)}, log=log, hooks=Hooks(reached=reached))
    found = await outcome_of(site, await site.settled(ASK))
    assert found.get("result", found.get("error", {}).get("code") if "error" in found else None) == outcome
    assert len(used.uses) == (1 if effect == "once" else 2)


async def test_what_only_reads_is_known_too(sites):
    """RS-47: its operation is committed with its result, and is nothing that could not be undone."""
    used = Used("blue")
    site = await sites(works={"agent": calling(Tool(name="tool", run=used, effect="none"))})
    await site.settled(ASK)
    told = (await site.get(f"/v1/operations/{used.uses[0].operation_id}")).json
    assert (told["status"], told["result"], told["reversible"]) == ("committed", "blue", True)
