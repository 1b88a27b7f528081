"""The agent loop, played by a server: what it publishes, when it asks its model, what it makes of answers and cancels."""

import pytest

from reattach_mockserver.agent.loop import AgentWork
from reattach_mockserver.agent.model import Called, Said
from reattach_mockserver.agent.scripted import ScriptedModel
from reattach_mockserver.agent.tool import Tool

pytestmark = pytest.mark.anyio


async def events_of(site, run: dict) -> list[dict]:
    return (await site.get(f"/v1/runs/{run['id']}/events?limit=1000")).json["events"]


def told(events: list[dict]) -> list[str]:
    """Name each event's type, runs of deltas as one."""
    types = [event["type"] for event in events]
    return [kind for at, kind in enumerate(types) if kind != "message.delta" or types[at - 1] != kind]


def charge_tool(**more) -> Tool:
    return Tool(name="charge", run=lambda use: {"charged": use.arguments["cents"]}, effect="ledger", **more)


async def test_every_step_is_in_the_log_before_it_is_acted_on(sites):
    """RS-40, RS-47: the user's turn, the model's, the call with its operation id, its result, the model's last words, the end."""
    model = ScriptedModel([[Said("Let me see."), Called("charge", {"cents": 9})], [Said("Done.")]])
    site = await sites(works={"agent": AgentWork(model=model, tools=[charge_tool()])})
    run = await site.settled({"input": {"scenario": "agent", "text": "pay"}})
    events = await events_of(site, run)
    assert told(events) == [
        "run.created", "run.started", "message.completed",
        "message.delta", "message.completed", "tool.call", "tool.result",
        "message.delta", "message.completed", "run.completed",
    ]  # fmt: skip
    assert (run["status"], run["result"]) == ("completed", {"text": "Done."})
    call, result = (next(e["data"] for e in events if e["type"] == kind) for kind in ("tool.call", "tool.result"))
    assert result == {"call_id": call["call_id"], "operation_id": call["operation_id"], "result": {"charged": 9}}
    operation = (await site.get(f"/v1/operations/{call['operation_id']}")).json
    assert (operation["status"], operation["result"]) == ("committed", {"charged": 9})
