"""The agent loop, played by a server: what it publishes, when it asks its model, what it makes of answers and cancels."""

import asyncio

import pytest

from agent_stage import ASK, Recorder, Used, data_of, events_of, soon, types
from reattach_mockserver.agent.loop import AgentWork
from reattach_mockserver.agent.model import Called, ModelTurn, Said, ToolTurn, UserTurn
from reattach_mockserver.agent.scripted import ScriptedModel
from reattach_mockserver.agent.tool import Tool, always
from reattach_mockserver.engine import worker
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

DONE = [Said("Done.")]


async def test_every_step_is_in_the_log_before_it_is_acted_on(sites):
    """RS-40, RS-47: the user's turn, the model's, the call with its operation id, its result, the model's last words, the end."""
    model = ScriptedModel([[Said("Let me see."), Called("charge", {"cents": 9})], DONE])
    charge = Tool(name="charge", run=lambda use: {"charged": use.arguments["cents"]}, effect="ledger")
    site = await sites(works={"agent": AgentWork(model=model, tools=[charge])})
    run = await site.settled(ASK)
    events = await events_of(site, run)
    assert types(events) == [
        "run.created", "run.started", "message.completed",
        "message.delta", "message.completed", "tool.call", "tool.result",
        "message.delta", "message.completed", "run.completed",
    ]  # fmt: skip
    assert (run["status"], run["result"]) == ("completed", {"text": "Done."})
    (call,), (result,) = data_of(events, "tool.call"), data_of(events, "tool.result")
    assert result == {"call_id": call["call_id"], "operation_id": call["operation_id"], "result": {"charged": 9}}
    operation = (await site.get(f"/v1/operations/{call['operation_id']}")).json
    assert (operation["status"], operation["result"]) == ("committed", {"charged": 9})


async def test_deltas_name_their_message_and_add_up_to_it(sites):
    site = await sites(works={"agent": AgentWork(model=ScriptedModel([[Said("one two three")]]))})
    events = await events_of(site, await site.settled(ASK))
    deltas, (user, said) = data_of(events, "message.delta"), data_of(events, "message.completed")
    assert [delta["index"] for delta in deltas] == [0, 1, 2]
    assert {delta["message_id"] for delta in deltas} == {said["message_id"]}
    assert "".join(delta["text"] for delta in deltas) == said["text"] == "one two three"
    assert (user["role"], said["role"]) == ("user", "assistant")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("plain", "plain"),
        ({"text": "a member"}, "a member"),
        ({"scenario": "agent", "a": [1]}, '{"a":[1]}'),
        ([1, 2], "[1,2]"),
    ],
)
async def test_the_input_is_what_the_user_says(sites, given, text):
    site = await sites(works={"agent": AgentWork(model=ScriptedModel([DONE]))}, default="agent")
    events = await events_of(site, await site.settled({"input": given}))
    assert data_of(events, "message.completed")[0]["text"] == text


async def test_the_model_knows_the_whole_session_and_what_its_calls_came_to(sites):
    """A session is its log: another run in it, by another process if need be, goes on with what was said."""
    model = Recorder([[Said("Once."), Called("look", {"at": "sky"})], [Said("Clear.")], [Said("Again.")]])
    look = Tool(name="look", run=lambda use: "blue", effect="none")
    site = await sites(works={"agent": AgentWork(model=model, tools=[look])})
    await site.settled({**ASK, "session_id": "s"})
    await site.engine.restart()
    run = await site.settled({"input": {"scenario": "agent", "text": "more"}, "session_id": "s"})
    assert run["result"] == {"text": "Again."}
    first, second, third = model.asked
    (call,) = second[1].calls
    assert first == (UserTurn("go"),)
    assert second == (UserTurn("go"), ModelTurn("Once.", (call,)), ToolTurn(call.call_id, "blue"))
    assert third == (*second, ModelTurn("Clear."), UserTurn("more"))
    assert (call.tool, call.arguments) == ("look", {"at": "sky"})


async def test_calls_of_one_turn_are_done_side_by_side(sites):
    """As many as `parallel` says; each result is in the log as soon as it is there."""
    tools = [Used("a", waits=True), Used("b", waits=True), Used("c", waits=True)]
    model = ScriptedModel([[Called(name) for name in "abc"], DONE])
    named = [Tool(name=name, run=run, effect="none") for name, run in zip("abc", tools, strict=True)]
    site = await sites(works={"agent": AgentWork(model=model, tools=named, parallel=2)})
    run = await site.run(ASK)
    await soon(asyncio.gather(tools[0].began.wait(), tools[1].began.wait()))
    assert not tools[2].began.is_set()
    tools[1].free.set()
    await soon(tools[2].began.wait())
    assert [result["result"] for result in data_of(await events_of(site, run), "tool.result")] == ["b"]
    tools[2].free.set()
    await site.until_head(run["id"], 8)
    tools[0].free.set()
    run = await site.until_settled(run["id"])
    assert [result["result"] for result in data_of(await events_of(site, run), "tool.result")] == ["b", "c", "a"]


async def test_what_needs_approval_waits_for_it_and_what_does_not_is_done(sites):
    """RS-55, RS-47: the run pauses once the free call has its result; what was approved is done under the id it was asked with."""
    model = Recorder([[Called("look"), Called("pay", {"cents": 9})], DONE])
    pay = Used("paid")
    tools = [
        Tool(name="look", run=lambda use: "blue", effect="none"),
        Tool(name="pay", run=pay, effect="ledger", needs_approval=lambda arguments: arguments["cents"] > 5),
    ]
    site = await sites(works={"agent": AgentWork(model=model, tools=tools)})
    paused = await site.settled(ASK)
    events = await events_of(site, paused)
    assert types(events)[-4:] == ["tool.call", "action.required", "tool.result", "run.paused"]
    (action,) = paused["required_actions"]
    assert (paused["status"], action["kind"], action["tool"]) == ("requires_action", "approval", "pay")
    assert action["arguments"] == {"cents": 9}
    assert pay.uses == []
    body = {"continues": paused["id"], "responses": [{"action_id": action["id"], "decision": "approve"}]}
    run = await site.settled(body)
    events = await events_of(site, run)
    assert types(events)[:5] == ["run.created", "action.resolved", "run.started", "tool.call", "tool.result"]
    (call,) = data_of(events, "tool.call")
    assert (call["call_id"], call["operation_id"]) == (action["id"], action["operation_id"])
    assert [use.operation_id for use in pay.uses] == [action["operation_id"]]
    assert run["result"] == {"text": "Done."}
    assert [turn.result for turn in model.asked[1] if isinstance(turn, ToolTurn)] == ["blue", "paid"]
    assert (await site.get(f"/v1/operations/{action['operation_id']}")).json["status"] == "committed"


async def test_who_cannot_tell_whether_to_ask_asks(sites):
    """The model called with what nobody thought of; a person sees it before anything is done."""
    model, pay = Recorder([[Called("pay", {"euros": 1})], DONE]), Used("paid")
    tool = Tool(name="pay", run=pay, needs_approval=lambda arguments: arguments["cents"] > 5)
    site = await sites(works={"agent": AgentWork(model=model, tools=[tool])})
    paused = await site.settled(ASK)
    assert (paused["status"], pay.uses) == ("requires_action", [])
    action_id = paused["required_actions"][0]["id"]
    await site.settled({"continues": paused["id"], "responses": [{"action_id": action_id, "decision": "approve"}]})
    assert len(pay.uses) == 1


async def test_what_is_refused_is_not_done_and_the_model_is_told(sites):
    """RS-89: with the reason that was given."""
    model, pay = Recorder([[Called("pay")], DONE]), Used("paid")
    site = await sites(
        works={"agent": AgentWork(model=model, tools=[Tool(name="pay", run=pay, needs_approval=always)])}
    )
    paused = await site.settled(ASK)
    action_id = paused["required_actions"][0]["id"]
    response = {"action_id": action_id, "decision": "reject", "reason": "too much"}
    run = await site.settled({"continues": paused["id"], "responses": [response]})
    assert (run["result"], pay.uses) == ({"text": "Done."}, [])
    assert model.asked[1][-1] == ToolTurn(action_id, error={"code": "rejected", "message": "too much"})


@pytest.mark.parametrize("answer", [{"result": {"seen": True}}, {"error": {"code": "blind"}}])
async def test_a_tool_of_the_clients_is_done_by_the_client(sites, answer):
    model = Recorder([[Called("camera")], DONE])
    site = await sites(works={"agent": AgentWork(model=model, tools=[Tool(name="camera", run=None)])})
    paused = await site.settled(ASK)
    (action,) = paused["required_actions"]
    assert action["kind"] == "client_tool"
    await site.settled({"continues": paused["id"], "responses": [{"action_id": action["id"], **answer}]})
    assert model.asked[1][-1] == ToolTurn(action["id"], **answer)


async def test_a_continuation_may_say_something_as_well(sites):
    """After what became of the calls, as the model has to see it."""
    model = Recorder([[Called("pay")], DONE])
    site = await sites(works={"agent": AgentWork(model=model, tools=[Tool(name="pay", run=None)])})
    paused = await site.settled(ASK)
    action_id = paused["required_actions"][0]["id"]
    body = {"continues": paused["id"], "responses": [{"action_id": action_id, "result": 1}], "input": "hurry"}
    run = await site.settled(body)
    assert run["status"] == "completed"
    assert model.asked[1][-2:] == (ToolTurn(action_id, 1), UserTurn("hurry"))


async def test_who_goes_on_without_answering_has_answered(sites):
    """A new run in the session: the model is told that nothing was done."""
    model = Recorder([[Called("pay")], DONE])
    site = await sites(works={"agent": AgentWork(model=model, tools=[Tool(name="pay", run=None)])})
    await site.settled({**ASK, "session_id": "s"})
    run = await site.settled({**ASK, "session_id": "s"})
    assert run["status"] == "completed"
    assert model.asked[1][-2].error["code"] == "not_answered"


async def test_an_approval_for_another_release_or_a_tool_that_is_gone_is_stale(sites):
    pay = Tool(name="pay", run=lambda use: "paid", needs_approval=always)
    works = {"agent": AgentWork(model=ScriptedModel([[Called("pay")], DONE]), tools=[pay], release="r1")}
    site = await sites(works=works)
    paused = await site.settled(ASK)
    action_id = paused["required_actions"][0]["id"]
    body = {"continues": paused["id"], "responses": [{"action_id": action_id, "decision": "approve"}]}
    scripts = site.engine.settings.scripts._scripts
    for changed in (
        AgentWork(model=ScriptedModel([]), tools=[pay], release="r2"),
        AgentWork(model=ScriptedModel([]), release="r1"),
        AgentWork(model=ScriptedModel([]), tools=[Tool(name="pay", run=None)], release="r1"),
    ):
        scripts["agent"] = changed
        assert (await site.create(body)).code == "approval_stale"
    scripts["agent"] = works["agent"]
    assert (await site.settled(body))["status"] == "completed"


async def test_a_cancel_tells_what_is_known_unknown_and_irreversible(sites, monkeypatch):
    """RS-53: a call that comes to its end in the time that is left is known; one that does not is unknown."""
    monkeypatch.setattr(worker, "_GRACE", 0.3)
    quick, stuck = Used("quick", waits=True), Used("stuck", waits=True)
    model = ScriptedModel([[Called("done")], [Called("quick"), Called("stuck")], DONE])
    tools = [
        Tool(name="done", run=lambda use: 1, effect="ledger"),
        Tool(name="quick", run=quick, effect="ledger", reversible=True),
        Tool(name="stuck", run=stuck, external=True),
    ]
    site = await sites(works={"agent": AgentWork(model=model, tools=tools)})
    run = await site.run(ASK)
    await soon(asyncio.gather(quick.began.wait(), stuck.began.wait()))
    await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    quick.free.set()
    run = await site.until_settled(run["id"])
    events = await events_of(site, run)
    ids = {call["tool"]: call["operation_id"] for call in data_of(events, "tool.call")}
    assert events[-1]["data"]["operations"] == {
        "known": [ids["quick"]],
        "unknown": [ids["stuck"]],
        "irreversible": [ids["done"]],
        "external": [ids["stuck"]],
    }
    assert (await site.get(f"/v1/operations/{ids['stuck']}")).json["status"] == "unknown"
    stuck.free.set()


@pytest.mark.parametrize("effect", ["none", "ledger", "once"])
async def test_a_cancelled_run_begins_no_call_any_more(sites, effect):
    """RS-53: the one that was under way comes to its end; the one that waited for its place is known not to have been done."""
    used = Used("done", waits=True)
    tools = [Tool(name=name, run=used, effect=effect) for name in "ab"]
    agent = AgentWork(model=ScriptedModel([[Called("a"), Called("b")], DONE]), tools=tools, parallel=1)
    site = await sites(works={"agent": agent})
    run = await site.run(ASK)
    await soon(used.began.wait())
    await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    used.free.set()
    run = await site.until_settled(run["id"])
    events = await events_of(site, run)
    assert (run["status"], len(used.uses)) == ("cancelled", 1)
    done, left = sorted(data_of(events, "tool.result"), key=lambda result: "error" in result)
    assert (done["call_id"], done["result"], left["error"]["code"]) == (used.uses[0].call_id, "done", "cancelled")
    assert events[-1]["data"]["operations"]["unknown"] == []
    assert (await site.get(f"/v1/operations/{left['operation_id']}")).json["status"] == "failed"


async def test_a_cancel_stops_a_model_that_talks_on(sites):
    """RS-53: between two pieces; the message stays as it was shown, and the model is not asked again."""

    class Endless:
        async def turn(self, conversation, tools):
            while True:
                yield Said("on and ")

    site = await sites(works={"agent": AgentWork(model=Endless())})
    run = await site.run(ASK)
    await site.until_head(run["id"], 6)
    await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    run = await site.until_settled(run["id"])
    events = await events_of(site, run)
    assert (run["status"], types(events)[-2:]) == ("cancelled", ["message.delta", "run.cancelled"])


async def test_a_cancelled_runs_open_calls_are_unknown_to_the_next(sites, monkeypatch):
    """The next run of the session tells the model so, and does not do them."""
    monkeypatch.setattr(worker, "_GRACE", 0.05)
    model, stuck = Recorder([[Called("stuck")], DONE]), Used("late", waits=True)
    site = await sites(works={"agent": AgentWork(model=model, tools=[Tool(name="stuck", run=stuck)])})
    run = await site.run({**ASK, "session_id": "s"})
    await soon(stuck.began.wait())
    await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    await site.until_settled(run["id"])
    await site.settled({**ASK, "session_id": "s"})
    assert model.asked[1][-2].error["code"] == "outcome_unknown"
    assert len(stuck.uses) == 1
    stuck.free.set()


async def test_a_run_without_an_end_fails(sites):
    model = ScriptedModel([[Called("look")]] * 9)
    look = Tool(name="look", run=lambda use: 1, effect="none")
    site = await sites(works={"agent": AgentWork(model=model, tools=[look], max_turns=3)})
    run = await site.settled(ASK)
    assert run["error"]["code"] == "too_many_turns"
    assert len(data_of(await events_of(site, run), "tool.call")) == 3


@pytest.mark.parametrize("turn", [[Said("x" * 900)], [Called("look", {"far": "x" * 900})], [Called("look")]])
async def test_an_event_above_the_limit_fails_the_run(sites, turn):
    """What the model says, what it calls with, or what a tool returns: the run says which limit it was."""
    look = Tool(name="look", run=lambda use: "x" * 900, effect="none")
    agent = AgentWork(model=ScriptedModel([turn, DONE]), tools=[look])
    site = await sites(works={"agent": agent}, limits=Limits(event_bytes=800))
    run = await site.settled(ASK)
    assert (run["status"], run["error"]["code"]) == ("failed", "event_too_large")


async def test_a_session_whose_beginning_is_gone_fails_the_run(sites, monkeypatch):
    """It is not gone on with from the middle: the model would not know what was said."""
    site = await sites(works={"agent": AgentWork(model=ScriptedModel([DONE, DONE]))})
    await site.settled({**ASK, "session_id": "s"})
    read = site.engine.log.read

    async def trimmed(run_id, after, limit, max_bytes):
        return (await read(run_id, after, limit, max_bytes))[1:]

    monkeypatch.setattr(site.engine.log, "read", trimmed)
    assert (await site.settled({**ASK, "session_id": "s"}))["error"]["code"] == "history_lost"
