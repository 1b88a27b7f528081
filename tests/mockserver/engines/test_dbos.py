"""What only DBOS has: a file of its own, and one life in a process."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engines_stage import address_of, work_on
from reattach_mockserver.agent.loop import AgentWork
from reattach_mockserver.agent.model import Called, Said
from reattach_mockserver.agent.scripted import ScriptedModel
from reattach_mockserver.agent.tool import Tool
from reattach_mockserver.logs.sqlite import SqliteLog

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PAY = {"input": {"scenario": "agent", "text": "pay"}}


@pytest.fixture(autouse=True)
def here() -> None:
    address_of("dbos")


async def test_what_the_file_has_forgotten_the_log_knows(sites, tmp_path: Path):
    """Without `workflows.db` the workflow begins anew, and asks for no turn that is in the log."""
    begun, attempts = asyncio.Event(), []

    async def charge(use: Any) -> Any:
        attempts.append(use.attempt)
        begun.set()
        if use.attempt == 1:
            await asyncio.Event().wait()
        return {}

    counted = tmp_path / "asked"
    model = ScriptedModel([[Said("I charge."), Called("charge")], [Said("Done.")]], counted=counted)
    agent = AgentWork(model=model, tools=[Tool(name="charge", run=charge, effect="ledger")])
    site = await sites(works={"agent": work_on("dbos", agent, tmp_path, "")}, log=SqliteLog(tmp_path / "runs.db"))
    run = await site.run(PAY)
    await asyncio.wait_for(begun.wait(), 30)
    await site.engine.stop()
    (tmp_path / "workflows.db").unlink()
    site = await sites(works={"agent": work_on("dbos", agent, tmp_path, "")}, log=SqliteLog(tmp_path / "runs.db"))
    run = await site.until_settled(run["id"], patience=30)
    assert (run["status"], attempts, counted.read_text()) == ("completed", [1, 2], "0\n1\n")


async def test_two_files_in_one_process_are_refused_by_name(sites, tmp_path: Path, caplog):
    """DBOS lives once in a process; who gives it another file is told which one it has, and that run fails."""
    agent = AgentWork(model=ScriptedModel([[Said("Done.")]]))
    (tmp_path / "other").mkdir()
    works = {
        "agent": work_on("dbos", agent, tmp_path, ""),
        "other": work_on("dbos", agent, tmp_path / "other", ""),
    }
    site = await sites(works=works)
    assert (await site.settled(PAY))["status"] == "completed"
    run = await site.settled({"input": {"scenario": "other"}})
    assert (run["status"], run["error"]["code"]) == ("failed", "internal")
    assert f"has {tmp_path / 'workflows.db'} already" in caplog.text


async def test_the_applications_own_dbos_is_left_alone(sites, tmp_path: Path, caplog):
    """Who has launched DBOS for itself keeps it, also when the server ends; the run fails and the log says why."""
    from dbos import DBOS

    import reattach_mockserver.engines.dbos  # noqa: F401 (its workflow is registered before any launch)

    agent = AgentWork(model=ScriptedModel([[Said("Done.")]]))
    DBOS(
        config={"name": "application", "system_database_url": f"sqlite:///{tmp_path / 'own.db'}", "log_level": "ERROR"}
    )
    DBOS.launch()
    try:
        site = await sites(works={"agent": work_on("dbos", agent, tmp_path, "")})
        run = await site.settled(PAY)
        assert (run["status"], run["error"]["code"]) == ("failed", "internal")
        assert "the application has launched it already" in caplog.text
        await site.engine.stop()
        assert await DBOS.get_workflow_status_async("anything") is None, "it is there"
    finally:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
        DBOS.destroy()
