"""The agent's own suite, on the engines of others: whatever holds of its loop holds of the workflow."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_stage import ASK, data_of, events_of, soon
from engines_stage import address_of, work_on
from mockserver.agent.test_asking import *  # noqa: F403 (all of their tests, and what they stand on)
from mockserver.agent.test_calling import *  # noqa: F403
from mockserver.agent.test_loop import *  # noqa: F403
from reattach_mockserver.agent.loop import AgentWork
from reattach_mockserver.agent.model import Called, Said
from reattach_mockserver.agent.scripted import ScriptedModel
from reattach_mockserver.agent.tool import Tool, ToolUse

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(params=["dbos", "temporal"])
def sites(request: pytest.FixtureRequest, sites: Any, tmp_path: Path) -> Any:
    """Return a maker of sites whose agents are played by the engine."""
    kind, address = request.param, address_of(request.param)

    async def make(*scripts: Any, works: Any = None, **settings: Any) -> Any:
        played = {name: work_on(kind, work, tmp_path, address) for name, work in (works or {}).items()}
        return await sites(*scripts, works=played, **settings)

    return make


async def test_a_cancelled_run_begins_no_call_any_more(sites: Any) -> None:  # instead of the one above
    """RS-53: a step that the engine had not yet asked for is not asked for; its call stands as unknown, or as not begun."""
    uses: list[str] = []
    began, free = asyncio.Event(), asyncio.Event()

    async def used(use: ToolUse) -> Any:
        uses.append(use.operation_id)
        began.set()
        await soon(free.wait())
        return {}

    tools = [Tool(name=name, run=used, effect="ledger") for name in "ab"]
    model = ScriptedModel([[Called(name) for name in "ab"], [Said("Done.")]])
    site = await sites(works={"agent": AgentWork(model=model, tools=tools, parallel=1)})
    run = await site.run(ASK)
    await soon(began.wait())
    await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    free.set()
    run = await site.until_settled(run["id"])
    events = await events_of(site, run)
    (left,) = {call["operation_id"] for call in data_of(events, "tool.call")} - set(uses)
    assert (run["status"], len(uses)) == ("cancelled", 1)
    refused = [result["operation_id"] for result in data_of(events, "tool.result") if "error" in result]
    assert [left] in (refused, events[-1]["data"]["operations"]["unknown"])


async def test_calls_of_one_turn_are_done_side_by_side(sites: Any) -> None:  # instead of the one above
    """As many as `parallel` says; which of them are first is the engine's affair."""
    under_way: list[str] = []
    most, free = asyncio.Event(), asyncio.Event()

    async def used(use: ToolUse) -> Any:
        under_way.append(use.call_id)
        if len(under_way) == 2:
            most.set()
        await soon(free.wait())
        return {}

    tools = [Tool(name=name, run=used, effect="none") for name in "abc"]
    model = ScriptedModel([[Called(name) for name in "abc"], [Said("Done.")]])
    site = await sites(works={"agent": AgentWork(model=model, tools=tools, parallel=2)})
    run = await site.run(ASK)
    await soon(most.wait())
    assert len(under_way) == 2
    free.set()
    run = await site.until_settled(run["id"])
    assert (run["status"], len(set(under_way))) == ("completed", 3)
    assert len(data_of(await events_of(site, run), "tool.result")) == 3
