"""The same agent on our own loop, as a workflow of DBOS, and as one of Temporal: what a client sees is the same.

Each fact on all three; how they outlive kills is in tests/system/test_engines_killed.py.
"""

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engines_stage import ENGINES, address_of, work_on
from reattach_mockserver.agent.loop import AgentWork
from reattach_mockserver.agent.model import Called, Said
from reattach_mockserver.agent.scripted import ScriptedModel
from reattach_mockserver.agent.tool import Tool, always
from reattach_mockserver.logs.base import LogUnavailable
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

PAY = {"input": {"scenario": "agent", "text": "pay"}}


@pytest.fixture(params=ENGINES)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def start(kind: str, sites, tmp_path: Path):
    """Return a maker of a site whose agent is played by the engine."""
    address = address_of(kind)

    async def make(agent: AgentWork, **settings: Any):
        work = work_on(kind, agent, tmp_path, address)
        return await sites(works={"agent": work}, log=SqliteLog(tmp_path / "runs.db"), **settings)

    return make


async def events_of(site, run: dict) -> list[dict]:
    return (await site.get(f"/v1/runs/{run['id']}/events?limit=1000")).json["events"]


def shape_of(events: list[dict]) -> list[tuple[str, str]]:
    """Return what a client sees, without what is another in each run: ids and times."""
    return [
        (event["type"], re.sub(r"(msg|call|op|ses|run)_[0-9a-f]{20}", r"\1", json.dumps(event["data"])))
        for event in events
    ]


def tool(run: Any, **more: Any) -> Tool:
    return Tool(**{"name": "charge", "run": run, "effect": "ledger", **more})


async def charge(use) -> Any:
    return {"charged": use.arguments["cents"]}


TURNS = [
    [Said("I charge twice, side by side."), Called("charge", {"cents": 9}), Called("charge", {"cents": 1})],
    [Called("charge", {"cents": 2})],
    [Said("All done.")],
]


class Counting(ScriptedModel):
    """Counts the turns that it was asked for."""

    def __init__(self, turns: Any) -> None:
        super().__init__(turns)
        self.asked: list[int] = []

    def turn(self, conversation, tools):
        self.asked.append(sum(type(turn).__name__ == "ModelTurn" for turn in conversation))
        return super().turn(conversation, tools)


WITH_WORKFLOWS = pytest.mark.parametrize("kind", [kind for kind in ENGINES if kind != "own"])


class Stumbling:
    """An agent at whose first call the log was away, for longer than its writer tries."""

    def __init__(self, agent: AgentWork) -> None:
        self._agent = agent
        self.stumbled = 0

    def steps(self, desk: Any) -> Any:
        steps = self._agent.steps(desk)

        async def step(name: str) -> Any:
            if name.startswith("call.") and not self.stumbled:
                self.stumbled += 1
                raise LogUnavailable("the disk was away")
            return await steps.step(name)

        return SimpleNamespace(step=step)


@pytest.mark.slow
class TestEachEngine:
    """Long only because two of them have a world of their own to start."""

    async def test_a_client_cannot_tell_the_engines_apart(self, start, sites, kind):
        """Types, texts, order and ids of a run: the same as our own loop's; each turn asked for once, each effect once."""
        counted = Counting(TURNS)
        site = await start(AgentWork(model=counted, tools=[tool(charge)]))
        run = await site.settled(PAY)
        events = await events_of(site, run)
        assert (run["status"], run["result"]) == ("completed", {"text": "All done."})
        own = await sites(works={"agent": AgentWork(model=ScriptedModel(TURNS), tools=[tool(charge)])})
        reference = await events_of(own, await own.settled(PAY))
        assert sorted(shape_of(events)) == sorted(shape_of(reference))
        assert [event["type"] for event in events] == [event["type"] for event in reference]
        assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
        assert [event["prev_id"] for event in events] == [None, *(event["id"] for event in events[:-1])]
        assert counted.asked == [0, 1, 2]
        assert (await site.engine.log.counts()).effects == 3

    async def test_an_approval_pauses_the_run_and_its_continuation_goes_on(self, start):
        """A pause is an outcome of the workflow; the answer is another run, with a workflow of its own."""
        model = Counting([[Called("charge", {"cents": 9})], [Said("Charged.")]])
        site = await start(AgentWork(model=model, tools=[tool(charge, needs_approval=always)]))
        paused = await site.settled(PAY)
        assert paused["status"] == "requires_action"
        responses = [{"action_id": action["id"], "decision": "approve"} for action in paused["required_actions"]]
        after = await site.settled({"continues": paused["id"], "responses": responses})
        assert (after["status"], after["result"]) == ("completed", {"text": "Charged."})
        assert model.asked == [0, 1]
        assert (await site.engine.log.counts()).effects == 1

    async def test_a_cancel_with_a_tool_in_flight_settles_the_run(self, start, kind):
        """The tool may come to its end in the grace that the engine gives; nothing else is begun, and nothing is repeated."""
        begun, go = asyncio.Event(), asyncio.Event()

        async def wait(use):
            begun.set()
            await go.wait()
            return {}

        model = Counting([[Called("charge")], [Said("Never said.")]])
        site = await start(AgentWork(model=model, tools=[tool(wait)]))
        run = await site.run(PAY)
        await asyncio.wait_for(begun.wait(), 30)
        assert (await site.call("POST", f"/v1/runs/{run['id']}/cancel")).status == 202
        go.set()
        run = await site.until_settled(run["id"])
        assert run["status"] == "cancelled"
        events = await events_of(site, run)
        assert [event["type"] for event in events][-2:] == ["tool.result", "run.cancelled"]
        assert model.asked == [0]
        if kind != "own":
            assert await over(kind, site, run) == "cancelled"

    async def test_a_tool_that_does_not_notice_a_cancel_stands_as_unknown(self, start, kind):
        """Ended after the grace: `run.cancelled` names it; the workflow is cancelled with its run."""
        begun = asyncio.Event()

        async def hang(use):
            begun.set()
            await asyncio.Event().wait()

        site = await start(AgentWork(model=ScriptedModel([[Called("charge")]]), tools=[tool(hang)]))
        run = await site.run(PAY)
        await asyncio.wait_for(begun.wait(), 30)
        await site.call("POST", f"/v1/runs/{run['id']}/cancel")
        run = await site.until_settled(run["id"])
        (call,) = [e["data"] for e in await events_of(site, run) if e["type"] == "tool.call"]
        cancelled = (await events_of(site, run))[-1]
        assert cancelled["data"]["operations"]["unknown"] == [call["operation_id"]]
        if kind != "own":
            assert await over(kind, site, run) == "cancelled"

    async def test_a_run_that_was_cancelled_while_nobody_had_it_ends_its_workflow_too(self, start, kind):
        """The process died between the cancel and the end; the next one settles the run without calling its work."""
        begun = asyncio.Event()

        async def hang(use):
            begun.set()
            await asyncio.Event().wait()

        site = await start(AgentWork(model=ScriptedModel([[Called("charge")]]), tools=[tool(hang)]))
        run = await site.run(PAY)
        await asyncio.wait_for(begun.wait(), 30)
        await site.engine.log.ask_cancel(run["id"], "requested")  # as a process does that dies before it acts on it
        await site.engine.restart()
        assert (await site.until_settled(run["id"]))["status"] == "cancelled"
        if kind != "own":
            assert await over(kind, site, run) == "cancelled"

    async def test_a_restart_in_a_step_does_that_step_again_and_no_other(self, start):
        """The engine of the server stops and starts: its workflow is found, its finished steps stand, the effect counts once."""
        begun, attempts = asyncio.Event(), []

        async def wait(use):
            attempts.append(use.attempt)
            begun.set()
            if use.attempt == 1:
                await asyncio.Event().wait()
            return {"charged": 9}

        model = Counting([[Said("I charge."), Called("charge")], [Said("Done.")]])
        site = await start(AgentWork(model=model, tools=[tool(wait)]))
        run = await site.run(PAY)
        await asyncio.wait_for(begun.wait(), 30)
        before = await events_of(site, run)
        await site.engine.restart()
        run = await site.until_settled(run["id"])
        events = await events_of(site, run)
        assert events[: len(before)] == before
        assert (run["status"], attempts, model.asked) == ("completed", [1, 2], [0, 1])
        assert (await site.engine.log.counts()).effects == 1
        assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))

    async def test_a_new_epoch_begins_a_workflow_that_finds_what_is_left_of_the_log(self, start):
        """What the old workflow knew as done does not count for a log that has lost its tail: it is said and done again there."""
        begun, go = asyncio.Event(), asyncio.Event()

        async def wait(use):
            begun.set()
            await go.wait()
            return {"charged": 9}

        model = Counting([[Said("I charge."), Called("charge")], [Said("Done.")]])
        site = await start(AgentWork(model=model, tools=[tool(wait)]))
        run = await site.run(PAY)
        await asyncio.wait_for(begun.wait(), 30)
        await site.engine.new_epoch(run["id"], 3)
        go.set()
        after = await site.until_settled(run["id"])
        assert (after["status"], after["result"], model.asked) == ("completed", {"text": "Done."}, [0, 0, 1])
        assert after["epoch"] != run["epoch"]
        assert (await site.engine.log.counts()).effects == 1

    @WITH_WORKFLOWS
    async def test_a_log_that_was_away_for_long_ends_no_workflow(self, kind, sites, tmp_path):
        """The run is gone on with when the log is there again, and its workflow with it, from the step that it was in."""
        model = Counting(TURNS)
        agent = Stumbling(AgentWork(model=model, tools=[tool(charge)]))
        site = await sites(
            works={"agent": work_on(kind, agent, tmp_path, address_of(kind))}, log=SqliteLog(tmp_path / "runs.db")
        )
        run = await site.settled(PAY)
        assert (run["status"], run["result"]) == ("completed", {"text": "All done."})
        assert (agent.stumbled, model.asked) == (1, [0, 1, 2])
        assert await over(kind, site, run) == "completed"

    async def test_half_of_a_surrogate_pair_goes_through_every_engine(self, start):
        """Legal in JSON, and no UTF-8: a vendor's tool may say it, and a file of an engine must not choke on it."""
        site = await start(AgentWork(model=ScriptedModel([[Said("half \ud83d")]]), tools=[]))
        run = await site.settled(PAY)
        assert (run["status"], run["result"]) == ("completed", {"text": "half \ud83d"})

    async def test_a_model_that_fails_fails_the_run_by_its_name(self, start, kind):
        """An outcome of the workflow, not an error of it: nothing retries it behind the run's back."""
        site = await start(AgentWork(model=ScriptedModel([]), tools=[]))
        run = await site.settled(PAY)
        assert (run["status"], run["error"]["code"]) == ("failed", "model_failed")
        if kind != "own":
            assert await over(kind, site, run) == "completed"

    async def test_an_event_above_the_limit_fails_the_run_on_every_engine(self, start, kind):
        """What a step raises settles the run, and ends its workflow."""
        site = await start(
            AgentWork(model=ScriptedModel([[Called("charge")]]), tools=[tool(lambda use: "x" * 5000)]),
            limits=Limits(event_bytes=2000),
        )
        run = await site.settled(PAY)
        assert (run["status"], run["error"]["code"]) == ("failed", "event_too_large")
        if kind != "own":
            assert await over(kind, site, run) == "cancelled"

    @WITH_WORKFLOWS
    async def test_who_ends_the_workflow_with_the_engines_own_means_cancels_the_run(self, start, kind):
        """A run never stands as running because its workflow was taken from under it."""
        begun = asyncio.Event()

        async def hang(use):
            begun.set()
            await asyncio.Event().wait()

        site = await start(AgentWork(model=ScriptedModel([[Called("charge")]]), tools=[tool(hang)]))
        run = await site.run(PAY)
        await asyncio.wait_for(begun.wait(), 30)
        if kind == "dbos":
            from dbos import DBOS

            await DBOS.cancel_workflow_async(f"{run['id']}-1")
        else:
            await (await handle_of(run)).cancel()
        run = await site.until_settled(run["id"])
        assert run["status"] == "cancelled"

    async def test_the_release_and_the_questions_of_an_agent_are_its_works(self, start):
        """RS-44: what another release asked approval for is stale, whoever plays it."""
        agent = AgentWork(
            model=ScriptedModel([[Called("charge")]]), tools=[tool(charge, needs_approval=always)], release="r2"
        )
        site = await start(agent)
        paused = await site.settled(PAY)
        assert [e["data"] for e in await events_of(site, paused) if e["type"] == "release.changed"] == [
            {"release": "r2"}
        ]
        work = site.engine.players.playable("agent")
        assert work.release == "r2"
        assert work.asks(paused["required_actions"][0])
        assert not work.asks({"tool": "other", "arguments": {}, "kind": "approval"})


async def handle_of(run: dict):
    from temporalio.client import Client

    client = await Client.connect(address_of("temporal"))
    return client.get_workflow_handle(f"{run['id']}-1")


async def over(kind: str, site, run: dict) -> str:
    """Return what the run's workflow came to, as its engine says."""
    async with asyncio.timeout(30):
        while True:
            if kind == "dbos":
                from dbos import DBOS

                status = await DBOS.get_workflow_status_async(f"{run['id']}-1")
                word = {"SUCCESS": "completed", "CANCELLED": "cancelled"}.get(status.status)
            else:
                described = await (await handle_of(run)).describe()
                word = {"COMPLETED": "completed", "CANCELED": "cancelled"}.get(described.status.name)
            if word is not None:
                return word
            await asyncio.sleep(0.02)  # what it waits for is another process's affair
