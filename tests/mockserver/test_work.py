"""The seam of plug-in work (`engine/work.py`): what the engine promises to a work, and holds it to."""

import pytest

from reattach_mockserver.engine.work import Completed, Desk, Outcome

pytestmark = pytest.mark.anyio


async def events_of(site, run_id: str) -> list[dict]:
    return (await site.get(f"/v1/runs/{run_id}/events?limit=1000")).json["events"]


async def test_a_work_plays_the_run_that_names_it(sites):
    """RS-40: it gets the run's input, what it publishes is the log, what it returns settles it; nobody needs to watch."""

    async def echo(desk: Desk) -> Outcome:
        event = await desk.publish(
            "said", "message.completed", {"message_id": "m", "role": "user", "text": desk.input["text"]}
        )
        return Completed({"seen": event["sequence"]})

    site = await sites(works={"echo": echo})
    run = await site.settled({"input": {"scenario": "echo", "text": "hi"}})
    assert (run["status"], run["result"]) == ("completed", {"seen": 3})
    types = [event["type"] for event in await events_of(site, run["id"])]
    assert types == ["run.created", "run.started", "message.completed", "run.completed"]
