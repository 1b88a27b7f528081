"""A replica that plays an agent is stopped, as a closed laptop is, and wakes when another has long done its work."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from agent_lives import Life, Nursery, lines
from reattach_mockserver.logs.redis.log import RedisLog
from redis_stage import empty_database


def log_of(url: str) -> tuple[list[dict], list[str]]:
    """Return the events of both runs, in their order, and the tools whose effects the ledger has."""

    async def read() -> tuple[list[dict], list[str]]:
        log = RedisLog(url)
        await log.open()
        try:
            runs = await log.runs(0, 10)
            events = [json.loads(event.body) for run in runs for event in await log.read(run.id, 0, 1_000, 1 << 24)]
            return events, sorted([effect.tool for run in runs for effect in await log.effects(run.id)])
        finally:
            await log.close()

    return asyncio.run(read())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stops_at", "tool", "surfaced"),
    [("execute", "look", False), ("claimed", "charge", False), ("executed", "launch", True)],
)
def test_a_replica_that_wakes_finds_its_calls_refused(tmp_path: Path, stops_at: str, tool: str, surfaced: bool) -> None:
    """RS-38, RS-46, RS-60, RS-62: stopped by SIGSTOP in its calls, taken over, reconciled by claim; then continued.

    The late one records nothing and publishes nothing; its own client goes on to see what the other one published.
    """
    url = empty_database()
    place = {"look": "_0_0", "charge": "_0_1", "launch": "_1_0"}[tool]
    with Nursery() as first, Nursery() as second:
        first.begin(Life(str(tmp_path), redis=url, stops_at=stops_at, at=place, client="asleep"))
        pid = first.stopped()
        try:
            second.begin(Life(str(tmp_path), redis=url, client="awake"))
            assert not second.end()
            before = log_of(url)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert not first.end()
    events, effects = log_of(url)
    assert (events, effects) == before, "whoever woke up changed something"
    assert effects == ["charge", *([] if surfaced else ["launch"]), "look", "mail", "refund"]
    for client in ("asleep", "awake"):
        seen = [json.loads(line) for number in (1, 2) for line in lines(tmp_path / f"{client}.{number}")]
        assert seen == events, f"the client of the one {client} saw each event once"
    results = {event["data"]["call_id"]: event["data"] for event in events if event["type"] == "tool.result"}
    calls = {event["data"]["tool"]: event["data"] for event in events if event["type"] == "tool.call"}
    assert len(results) == len(calls) == 5
    launch = results[calls["launch"]["call_id"]]
    assert launch.get("error", {}).get("code") == ("outcome_unknown" if surfaced else None)
    assert len(lines(tmp_path / "launches")) == 1
    assert len(lines(tmp_path / "mails")) == 1
    assert lines(tmp_path / "asked") == ["0", "1", "2"], "no turn was asked for twice"
    assert [event["type"] for event in events if event["type"].startswith("run.")] == [
        "run.created", "run.started", "run.paused", "run.created", "run.started", "run.completed",
    ]  # fmt: skip
