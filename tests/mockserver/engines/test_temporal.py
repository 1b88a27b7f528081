"""What only Temporal has: a server that dies or is away, and processes that take a workflow from each other."""

import asyncio
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from mockserver_stage import Site
from reattach_mockserver.agent.loop import AgentWork
from reattach_mockserver.agent.model import Called, Said
from reattach_mockserver.agent.scripted import ScriptedModel
from reattach_mockserver.agent.tool import Tool
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.logs.sqlite import SqliteLog
from temporal_stage import TemporalServer, required, temporal

__all__ = ["temporal"]

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PAY = {"input": {"scenario": "agent", "text": "pay"}}
TURNS = [[Said("I charge."), Called("charge", {"cents": 9})], [Said("Done.")]]


class Charging:
    """A tool whose effect is the ledger's; each attempt waits for its own leave."""

    def __init__(self) -> None:
        self.attempts: list[int] = []
        self.begun: dict[int, asyncio.Event] = {1: asyncio.Event(), 2: asyncio.Event()}
        self.may_end: dict[int, asyncio.Event] = {1: asyncio.Event(), 2: asyncio.Event()}

    async def __call__(self, use: Any) -> Any:
        self.attempts.append(use.attempt)
        self.begun[use.attempt].set()
        await self.may_end[use.attempt].wait()
        return {"attempt": use.attempt}

    def agent(self) -> AgentWork:
        return AgentWork(model=ScriptedModel(TURNS), tools=[Tool(name="charge", run=self, effect="ledger")])


def work_on(agent: AgentWork, server: TemporalServer) -> Any:
    from reattach_mockserver.engines.temporal import TemporalEngine

    return TemporalEngine(agent, server.address)


async def results_of(site: Site, run: dict) -> list[Any]:
    events = (await site.get(f"/v1/runs/{run['id']}/events?limit=1000")).json["events"]
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    return [event["data"]["result"] for event in events if event["type"] == "tool.result"]


async def described(run: dict, server: TemporalServer) -> Any:
    from temporalio.client import Client

    client = await Client.connect(server.address)
    return await client.get_workflow_handle(f"{run['id']}-1").describe()


async def begun(charging: Charging, attempt: int = 1) -> None:
    await asyncio.wait_for(charging.begun[attempt].wait(), 60)


@pytest.fixture
def own_server() -> Iterator[TemporalServer]:
    """A server of this test's alone, which it may keep away for long."""
    server = TemporalServer(required())
    yield server
    server.remove()


async def test_a_server_that_is_killed_in_a_step_repeats_nothing(sites, temporal):
    """RS-45: its history is in its file; the step goes on in our process meanwhile, and its end is heard of."""
    charging = Charging()
    site = await sites(works={"agent": work_on(charging.agent(), temporal)})
    run = await site.run(PAY)
    await begun(charging)
    await asyncio.to_thread(temporal.crash)
    charging.may_end[1].set()
    run = await site.until_settled(run["id"], patience=60)
    assert (run["status"], run["result"]) == ("completed", {"text": "Done."})
    assert (charging.attempts, await results_of(site, run)) == ([1], [{"attempt": 1}])


async def test_a_run_waits_for_a_server_that_is_away(sites, own_server):
    """It is created, durable and readable meanwhile; it goes on when the server is there."""
    await asyncio.to_thread(own_server.stop, 9)
    charging = Charging()
    charging.may_end[1].set()
    site = await sites(works={"agent": work_on(charging.agent(), own_server)})
    run = await site.run(PAY)
    await site.until_head(run["id"], 2)
    assert (await site.get(f"/v1/runs/{run['id']}")).json["status"] == "running"
    await asyncio.to_thread(own_server.start)
    run = await site.until_settled(run["id"], patience=60)
    assert (run["status"], charging.attempts) == ("completed", [1])


async def test_a_cancel_needs_no_server_and_the_workflow_hears_of_it_later(sites, own_server):
    """The run settles in its time; the workflow ends when its server can be told."""
    charging = Charging()
    site = await sites(works={"agent": work_on(charging.agent(), own_server)})
    run = await site.run(PAY)
    await begun(charging)
    await asyncio.to_thread(own_server.stop, 9)
    await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    charging.may_end[1].set()
    assert (await site.until_settled(run["id"]))["status"] == "cancelled"
    await asyncio.to_thread(own_server.start)
    async with asyncio.timeout(60):
        # What it waits for is another process's affair.
        while (await described(run, own_server)).status.name != "CANCELED":  # noqa: ASYNC110 (it sets no event here)
            await asyncio.sleep(0.05)


async def test_who_takes_a_run_over_does_its_steps_and_who_lost_it_does_no_more(sites, temporal):
    """RS-61: the workflow is told of the new place at once, and a dead or sleeping process is waited for by nobody.

    The first server's tool ends after the second's: its claim is void, so it counts for nothing.
    """
    charging, log = Charging(), MemoryLog()
    first = await sites(works={"agent": work_on(charging.agent(), temporal)}, log=log)
    run = await first.run(PAY)
    await begun(charging)
    second = await sites(works={"agent": work_on(charging.agent(), temporal)}, log=log)  # takes over what is unfinished
    await begun(charging, 2)
    charging.may_end[2].set()
    run = await second.until_settled(run["id"], patience=60)
    charging.may_end[1].set()
    assert (run["status"], charging.attempts) == ("completed", [1, 2])
    assert await results_of(second, run) == [{"attempt": 2}]
    assert (await log.counts()).effects == 1


async def test_a_step_that_takes_long_is_heard_of_and_stays_one_attempt(sites, temporal):
    """Heartbeats for as long as it takes: only a dead process's step is asked for again."""
    charging = Charging()
    site = await sites(works={"agent": work_on(charging.agent(), temporal)})
    run = await site.run(PAY)
    await begun(charging)
    async with asyncio.timeout(60):
        while True:
            (step,) = (await described(run, temporal)).raw_description.pending_activities
            if step.HasField("last_heartbeat_time"):
                break
            await asyncio.sleep(0.1)  # what it waits for is another process's affair
    assert step.attempt == 1
    charging.may_end[1].set()
    assert (await site.until_settled(run["id"], patience=60))["status"] == "completed"


async def test_a_workflow_that_ended_for_want_of_a_process_begins_anew(sites, temporal, monkeypatch):
    """Its history says what it had done, and so does the log: the run goes on from there."""
    from temporalio.client import Client, WorkflowFailureError
    from temporalio.worker import Worker

    from reattach_mockserver.engines import temporal as engine
    from temporal_nobody import NobodyCame

    charging, name = Charging(), f"left-{secrets.token_hex(8)}"
    charging.may_end[1].set()
    monkeypatch.setattr(engine, "workflow_id", lambda desk: name)
    client = await Client.connect(temporal.address)
    async with Worker(client, task_queue="left", workflows=[NobodyCame]):
        handle = await client.start_workflow(NobodyCame.run, "", id=name, task_queue="left")
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    site = await sites(works={"agent": work_on(charging.agent(), temporal)})
    run = await site.until_settled((await site.run(PAY))["id"], patience=60)
    assert (run["status"], charging.attempts) == ("completed", [1])


async def test_a_workflow_of_another_version_of_the_loop_begins_anew(sites, temporal, monkeypatch):
    """Its history does not fit what the loop does today; a deployment leaves no run behind."""
    from temporalio.client import Client
    from temporalio.worker import Worker

    from reattach_mockserver.engines import temporal as engine
    from temporal_nobody import OtherVersion

    charging, name = Charging(), f"version-{secrets.token_hex(8)}"
    charging.may_end[1].set()
    monkeypatch.setattr(engine, "workflow_id", lambda desk: name)
    client = await Client.connect(temporal.address)
    async with Worker(client, task_queue="reattach", workflows=[OtherVersion]):
        handle = await client.start_workflow(OtherVersion.run, "", id=name, task_queue="reattach")
        async with asyncio.timeout(60):
            # What it waits for is another process's affair: the timer is in the history.
            while (await handle.describe()).history_length < 5:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    site = await sites(works={"agent": work_on(charging.agent(), temporal)})
    run = await site.until_settled((await site.run(PAY))["id"], patience=60)
    assert (run["status"], charging.attempts) == ("completed", [1])


async def test_a_history_that_grows_long_is_continued_in_a_new_one(sites, tmp_path):
    """The loop begins again by name, and the log knows what is done: no turn and no call comes twice."""
    server = TemporalServer(required(), "--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=20")
    try:
        turns = [[Called("charge", {"cents": number})] for number in range(8)]
        counted = tmp_path / "asked"
        attempts: list[int] = []

        async def charge(use: Any) -> Any:
            attempts.append(use.arguments["cents"])
            return {}

        model = ScriptedModel([*turns, [Said("Done.")]], counted=counted)
        agent = AgentWork(model=model, tools=[Tool(name="charge", run=charge, effect="ledger")])
        site = await sites(works={"agent": work_on(agent, server)})
        run = await site.until_settled((await site.run(PAY))["id"], patience=60)
        assert (run["status"], attempts) == ("completed", list(range(8)))
        assert counted.read_text().split() == [str(number) for number in range(9)]
        assert len(await results_of(site, run)) == 8
        assert (await described(run, server)).history_length < 40, "it was continued"
    finally:
        server.remove()


async def test_what_a_server_has_forgotten_the_log_knows(sites, temporal, own_server, tmp_path):
    """Another server, or one without its file: the workflow begins anew there, and asks for no turn that is in the log."""
    charging, counted = Charging(), tmp_path / "asked"
    model = ScriptedModel(TURNS, counted=counted)
    agent = AgentWork(model=model, tools=[Tool(name="charge", run=charging, effect="ledger")])
    site = await sites(works={"agent": work_on(agent, own_server)}, log=SqliteLog(tmp_path / "runs.db"))
    run = await site.run(PAY)
    await begun(charging)
    await site.engine.stop()
    await asyncio.to_thread(own_server.stop, 9)
    charging.may_end[2].set()
    site = await sites(works={"agent": work_on(agent, temporal)}, log=SqliteLog(tmp_path / "runs.db"))
    run = await site.until_settled(run["id"], patience=60)
    assert (run["status"], charging.attempts, counted.read_text()) == ("completed", [1, 2], "0\n1\n")
