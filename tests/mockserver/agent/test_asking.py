"""How the model is asked: once a turn, again only for a turn that is not recorded, and not for ever."""

import asyncio
from pathlib import Path

import pytest

from agent_stage import ASK, Recorder, Used, data_of, events_of, soon, types
from reattach_mockserver.agent.loop import AgentWork
from reattach_mockserver.agent.model import Called, ModelError, ModelTurn, Said, UserTurn
from reattach_mockserver.agent.scripted import ScriptedModel
from reattach_mockserver.agent.tool import Tool

pytestmark = pytest.mark.anyio


class Faulty:
    """A model that says `says`, then raises, as often as it has errors to raise; then it is `Done.`."""

    def __init__(self, *errors: Exception, says: str = "") -> None:
        self.errors = list(errors)
        self.says = says
        self.asked = 0

    async def turn(self, conversation, tools):
        self.asked += 1
        if self.errors:
            if self.says:
                yield Said(self.says)
            raise self.errors.pop(0)
        yield Said("Done.")


def faulty(model: Faulty) -> AgentWork:
    return AgentWork(model=model, retry_seconds=0.001)


async def test_a_model_that_fails_is_asked_again(sites):
    model = Faulty(ModelError("busy"), RuntimeError("socket /run/agent"))
    site = await sites(works={"agent": faulty(model)})
    run = await site.settled(ASK)
    assert (run["result"], model.asked) == ({"text": "Done."}, 3)


async def test_a_model_that_keeps_failing_fails_the_run(sites):
    """RS-58: after so many attempts, with its own words if it has some for clients, without those of an exception."""
    for errors, words in (([ModelError("busy")] * 9, "busy"), ([RuntimeError("/secret")] * 9, "RuntimeError")):
        model = Faulty(*errors)
        site = await sites(works={"agent": faulty(model)})
        run = await site.settled(ASK)
        assert run["error"] == {"code": "model_failed", "message": f"the model failed: {words}"}
        assert model.asked == 3


async def test_a_model_that_will_never_is_asked_once(sites):
    model = Faulty(ModelError("no such model", permanent=True))
    site = await sites(works={"agent": faulty(model)})
    assert (await site.settled(ASK))["error"]["code"] == "model_failed"
    assert model.asked == 1


async def test_half_a_message_stands_as_it_was_shown(sites):
    """RS-61: it is closed as interrupted, the turn comes under another message id, and the model never hears of the half."""
    model = Faulty(ModelError("cut"), ModelError("cut"), says="Half a ")
    site = await sites(works={"agent": faulty(model)})
    run = await site.settled(ASK)
    said = data_of(await events_of(site, run), "message.completed")[1:]
    assert [(each["text"], each.get("interrupted", False)) for each in said] == [
        ("Half a ", True),
        ("Half a ", True),
        ("Done.", False),
    ]
    assert len({each["message_id"] for each in said}) == 3
    assert run["result"] == {"text": "Done."}
    messages = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json["messages"]
    assert [(each["text"], each["completed"]) for each in messages] == [
        ("go", True), ("Half a ", True), ("Half a ", True), ("Done.", True),
    ]  # fmt: skip


async def test_the_last_half_is_closed_before_the_run_fails(sites):
    site = await sites(works={"agent": faulty(Faulty(*[ModelError("cut")] * 9, says="Half a "))})
    events = await events_of(site, await site.settled(ASK))
    assert types(events)[-3:] == ["message.delta", "message.completed", "run.failed"]


async def test_the_model_is_not_asked_for_turns_behind_the_frontier(sites, tmp_path: Path):
    """RS-38, RS-45: another process goes on with the call that was open; the turn that made it is in the log."""
    counted, slow = tmp_path / "asked", Used("slow", waits=True)
    model = ScriptedModel([[Said("Wait."), Called("slow")], [Said("Done.")]], counted=counted)
    site = await sites(works={"agent": AgentWork(model=model, tools=[Tool(name="slow", run=slow, effect="ledger")])})
    run = await site.run(ASK)
    for _ in range(3):
        await soon(slow.began.wait())
        slow.began.clear()
        await site.engine.restart()
    slow.free.set()
    run = await site.until_settled(run["id"])
    assert run["result"] == {"text": "Done."}
    assert counted.read_text().split() == ["0", "1"]
    calls = data_of(await events_of(site, run), "tool.call")
    assert len(calls) == 1
    assert {use.operation_id for use in slow.uses} == {calls[0]["operation_id"]}
    assert [use.attempt for use in slow.uses] == [1, 2, 3, 4]


async def test_a_trailing_user_turn_asks_the_model(sites):
    """The process died after the user's turn was recorded: it is there once, and the model is asked with it."""
    lives = []
    held = asyncio.Event()

    class Held(Recorder):
        async def turn(self, conversation, tools):
            lives.append(conversation)
            if len(lives) == 1:
                held.set()
                await asyncio.Event().wait()
            async for piece in super().turn(conversation, tools):
                yield piece

    site = await sites(works={"agent": AgentWork(model=Held([[Said("Done.")]]))})
    run = await site.run(ASK)
    await soon(held.wait())
    await site.engine.restart()
    run = await site.until_settled(run["id"])
    assert lives == [(UserTurn("go"),)] * 2
    assert len(data_of(await events_of(site, run), "message.completed")) == 2


async def test_a_turn_that_says_and_calls_nothing_is_an_end(sites):
    site = await sites(works={"agent": AgentWork(model=ScriptedModel([[]]))})
    run = await site.settled(ASK)
    assert (run["status"], run["result"]) == ("completed", {"text": ""})


@pytest.mark.parametrize("arguments", [{"at": {1, 2}}, {"at": float("nan")}, 7])
async def test_a_call_with_what_is_no_json_is_the_models_failure(sites, arguments):
    """It is asked again, as for any other turn that is none; nothing of the turn is in the log."""
    site = await sites(
        works={"agent": AgentWork(model=ScriptedModel([[Called("look", arguments)]]), retry_seconds=0.001)}
    )
    run = await site.settled(ASK)
    assert run["error"]["code"] == "model_failed"
    assert data_of(await events_of(site, run), "tool.call") == []


async def test_a_turn_asked_for_again_has_the_operations_of_the_calls_that_are_the_same(sites):
    """RS-35, RS-45: the log lost its tail and with it the turn; what the ledger has is not done again, what is new is done."""
    pay = Used("paid", "paid other")
    first, more, end = Called("pay", {"cents": 9}), Called("pay", {"cents": 8}), Said("Done.")

    class Changing:
        """Says after the loss what it said before, and something more."""

        says: list = [[first], [end]]  # noqa: RUF012 (one model, one test)

        async def turn(self, conversation, tools):
            for piece in self.says[sum(isinstance(turn, ModelTurn) for turn in conversation)]:
                yield piece

    model = Changing()
    site = await sites(works={"agent": AgentWork(model=model, tools=[Tool(name="pay", run=pay, effect="ledger")])})
    run = await site.settled(ASK)
    model.says = [[more, first], [end]]
    await site.engine.new_epoch(run["id"], keep=3)
    run = await site.until_settled(run["id"])
    assert run["status"] == "completed"
    calls = data_of(await events_of(site, run), "tool.call")
    assert [use.arguments["cents"] for use in pay.uses] == [9, 8]
    assert {use.operation_id for use in pay.uses} == {call["operation_id"] for call in calls}
    results = {result["call_id"]: result["result"] for result in data_of(await events_of(site, run), "tool.result")}
    assert [results[call["call_id"]] for call in calls] == ["paid other", "paid"]


async def test_equal_calls_of_one_turn_are_different_operations(sites):
    pay = Used("paid")
    model = ScriptedModel([[Called("pay", {"cents": 9})] * 3, [Said("Done.")]])
    site = await sites(works={"agent": AgentWork(model=model, tools=[Tool(name="pay", run=pay, effect="ledger")])})
    await site.settled(ASK)
    assert len({use.operation_id for use in pay.uses}) == len({use.call_id for use in pay.uses}) == 3
