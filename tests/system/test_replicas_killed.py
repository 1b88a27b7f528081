"""Several server processes on one Redis behind nginx, killed, drained and restarted under clients that only know nginx."""

import asyncio
import json
import signal
from pathlib import Path

import httpx
import pytest

import reattach
from replicas_stage import PATIENCE, Cluster, cluster

SCRIPT = """
reattach: scenario/1
name: shift
limits: {heartbeat_ms: 1500}
steps:
  - {say: "a shift of several", every_ms: 20}
  - {tool: charge, takes_ms: 20, result: {ok: true}}
  - {repeat: 12, steps: [{say: "tick {i}", split: 3, every_ms: 25}, {tool: mail, takes_ms: 20, result: {i: "{i}"}}]}
  - {end: completed, result: {done: true}}
"""
TOOLS = 13

POLICY = reattach.Policy(retry_floor=0.05, retry_base=0.2, retry_ceiling=1.0, idle_timeout=10.0, poll_interval=5.0)


class Crowd:
    """Clients that follow a run each, through nginx; `seen` is what each was handed, in order."""

    def __init__(self, running: Cluster, folder: Path, number: int) -> None:
        self._running = running
        self._folder = folder
        self._more = asyncio.Event()
        self.seen: list[list[reattach.Event]] = [[] for _ in range(number)]
        self.run_ids = [""] * number

    async def follow(self, index: int) -> reattach.Outcome:
        folder = self._folder / str(
            index
        )  # as on a host of its own: those in one folder are opened one after the other
        folder.mkdir()
        async with reattach.AsyncClient(self._running.url, folder / "journal.db", policy=POLICY) as client:
            run = await client.start("go", key=f"k{index}")
            self.run_ids[index] = run.id
            async for event in run:
                self.seen[index].append(event)
                self._more.set()
            return await run.wait()

    async def has_seen(self, number: int) -> None:
        """Wait until so many events were handed out in all."""
        while sum(map(len, self.seen)) < number:
            self._more.clear()
            await self._more.wait()

    async def check(self) -> None:
        """Nothing lost, nothing doubled: what each was handed is the run's log, and each effect is there once."""
        async with httpx.AsyncClient(base_url=self._running.url, trust_env=False, timeout=PATIENCE) as client:
            for run_id, seen in zip(self.run_ids, self.seen, strict=True):
                page = (await client.get(f"/v1/runs/{run_id}/events?limit=1000")).json()
                assert [event.id for event in seen] == [event["id"] for event in page["events"]]
                assert [event["sequence"] for event in page["events"]] == list(range(1, len(seen) + 1))
                calls = [event["data"]["operation_id"] for event in page["events"] if event["type"] == "tool.result"]
                assert len(calls) == len(set(calls)) == TOOLS
        counts = self._running.counts()
        assert counts.runs == len(self.run_ids), "no run twice"
        assert (counts.effects, counts.events) == (TOOLS * counts.runs, sum(map(len, self.seen)))


async def one_run_of_one_key(running: Cluster, number: int) -> None:
    """B43, RS-42: creates with one key at once, at each replica and through nginx, make one run."""
    urls = [running.url, *(replica.url for replica in running.replicas)]
    body, key = {"input": "go"}, {"Idempotency-Key": "k0"}
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        answers = await asyncio.gather(
            *(client.post(f"{urls[n % len(urls)]}/v1/runs", json=body, headers=key) for n in range(number))
        )
    assert sorted(answer.status_code for answer in answers) == [200] * (number - 1) + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1


async def restart(running: Cluster, index: int, how: int) -> None:
    await asyncio.to_thread(running.restart, index, how)


@pytest.mark.timeout(300)
def test_replicas_are_killed_and_drained_and_nothing_is_lost_or_doubled(tmp_path):
    """B87, RS-60, RS-61, RS-62, RS-64: one is killed while all follow and write, the other drained when that one is back."""

    async def shift(running: Cluster) -> None:
        await one_run_of_one_key(running, 12)
        crowd = Crowd(running, tmp_path, 4)
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            following = [group.create_task(crowd.follow(index)) for index in range(4)]
            await crowd.has_seen(40)
            await restart(running, 0, signal.SIGKILL)
            await crowd.has_seen(160)
            await restart(running, 1, signal.SIGTERM)
        assert {each.result().status for each in following} == {"completed"}
        await crowd.check()

    with cluster(tmp_path, SCRIPT) as running:
        asyncio.run(shift(running))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_day_of_three_replicas_under_many_clients(tmp_path):
    """RS-60 to RS-64, RS-86: killed, drained, put to sleep and woken, Redis too; forty runs, none lost, none twice."""
    number = 40

    async def day(running: Cluster) -> None:
        crowd = Crowd(running, tmp_path, number)
        async with asyncio.timeout(500), asyncio.TaskGroup() as group:
            following = [group.create_task(crowd.follow(index)) for index in range(number)]
            for turn in range(9):
                await crowd.has_seen((turn + 1) * number * 8)
                index = turn % 3
                match turn // 3:
                    case 0:
                        await restart(running, index, signal.SIGKILL)
                    case 1:
                        await restart(running, index, signal.SIGTERM)
                    case _:
                        await sleep_through_the_lease(running, index)
            await asyncio.to_thread(running.redis.restart)
        assert {each.result().status for each in following} == {"completed"}
        await crowd.check()

    with cluster(tmp_path, SCRIPT, number=3) as running:
        asyncio.run(day(running))


async def sleep_through_the_lease(running: Cluster, index: int) -> None:
    """Stop a replica until another has taken what it owned, then let it wake."""
    replica = running.replicas[index]
    replica.pause()
    try:
        with running.redis.client() as client:
            before = set(client.zrange("reattach:replicas", 0, -1))
            while before <= set(client.zrange("reattach:replicas", 0, -1)):  # noqa: ASYNC110 (processes share no event)
                await asyncio.sleep(0.05)
    finally:
        replica.wake()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_replica_that_wakes_finds_itself_refused(tmp_path):
    """RS-86: put to sleep while it plays, its runs taken over meanwhile; awake it serves, and has written nothing more."""

    async def nap(running: Cluster) -> None:
        crowd = Crowd(running, tmp_path, 2)
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            following = [group.create_task(crowd.follow(index)) for index in range(2)]
            await crowd.has_seen(20)
            running.replicas[0].pause()
            await crowd.has_seen(120)
            running.replicas[0].wake()
        assert {each.result().status for each in following} == {"completed"}
        await crowd.check()
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
            texts = [
                (await client.get(f"{replica.url}/v1/runs/{crowd.run_ids[0]}/events?limit=1000")).text
                for replica in running.replicas
            ]
        assert texts[0] == texts[1]
        assert json.loads(texts[0])["status"] == "completed"

    with cluster(tmp_path, SCRIPT) as running:
        asyncio.run(nap(running))
