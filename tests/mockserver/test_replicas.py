"""Several engines on one log: any serves any run, one plays it, and what one is asked reaches the one that plays.

Each test is two applications in one loop on one real Redis; processes that are killed: tests/system/test_replicas_killed.py.
"""

import asyncio
import json

import pytest

from mockserver_stage import OPEN, PATIENCE, QUICK
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.hooks import Hooks
from reattach_mockserver.logs.base import LogUnavailable
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.logs.redis.log import RedisLog
from reattach_mockserver.scenarios.script import Action, Ask, Say, Script, Status, Tool, Wait
from reattach_mockserver.settings import Limits
from redis_stage import RedisServer, empty_database

pytestmark = pytest.mark.anyio

SLOW = Script(name="slow", steps=(Status(text="a"), Tool(tool="charge", takes_ms=60_000), Status(text="b")))
"""A tool in flight for a minute."""


async def pair(sites, *scripts, url=None, lease=3_600.0, **settings):
    url = url or empty_database()
    return [await sites(*scripts, log=RedisLog(url, lease=lease), **settings) for _ in range(2)]


def die(site):
    """End a replica as SIGKILL does: its players stop between two instructions, nothing is said and nothing let go of."""
    log = site.engine.log
    log._lease._task.cancel()
    log._lease._task = None
    for run_id in site.engine.players.playing():
        site.engine.players.drop(run_id)


async def types(site, run_id):
    return [json.loads(event.body)["type"] for event in await site.engine.log.read(run_id, 0, 1_000, 1 << 24)]


async def test_any_replica_streams_any_run_live_and_from_any_cursor(sites):
    """RS-60: created and played here, followed there; every cursor resumes there, and what is new comes without asking."""
    waits = asyncio.Event()

    async def replayed(run_id: str, sequence: int) -> None:
        if sequence == 3:
            waits.set()

    quiet_for_long = Limits(heartbeat_ms=3_600_000)  # so that only a wake-up wakes
    here, there = await pair(sites, limits=quiet_for_long, hooks=Hooks(replayed=replayed))
    run = await here.run({"input": {"scenario": "open"}})
    await here.until_head(run["id"], 3)
    stream = there.attach(run["id"])
    seen = [await stream.block() for _ in range(4)][1:]
    await asyncio.wait_for(waits.wait(), PATIENCE)
    await here.append(run["id"], "x")
    seen.append(await stream.block())
    assert [block.json["sequence"] for block in seen] == [1, 2, 3, 4]
    for block in seen[:-1]:
        resumed = there.attach(run["id"], last_event_id=block.id)
        await resumed.block()
        assert (await resumed.block()).json["sequence"] == block.json["sequence"] + 1
        await resumed.close()


async def test_who_saw_an_event_finds_it_and_the_status_at_any_replica(sites):
    """RS-20, RS-50, RS-63: asked at the other one at each event, as soon as it is received."""
    here, there = await pair(sites)
    run = await here.run()
    stream = here.attach(run["id"])
    await stream.block()
    while (block := await stream.block()) is not None:
        found = (await there.get(f"/v1/runs/{run['id']}")).json
        assert found["last_sequence"] >= block.json["sequence"]
        page = (await there.get(f"/v1/runs/{run['id']}/events?after={run['epoch']}.{block.json['sequence'] - 1}")).json
        assert page["events"][0] == block.json
        if block.json["type"] == "run.completed":
            assert found["status"] == "completed"
    assert found["status"] == "completed"


async def test_a_key_makes_one_run_wherever_it_is_used(sites):
    """RS-42, RS-43, RS-44: at once over both; later; with another body."""
    both = await pair(sites)
    answers = await asyncio.gather(*(both[n % 2].create({"input": "x"}, key="one") for n in range(10)))
    assert sorted(answer.status for answer in answers) == [200] * 9 + [201]
    assert len({answer.json["id"] for answer in answers}) == 1
    await both[0].until_settled(answers[0].json["id"])
    assert [(await site.create({"input": "x"}, key="one")).status for site in both] == [200, 200]
    assert (await both[1].create({"input": "y"}, key="one")).code == "idempotency_conflict"
    assert (await both[0].engine.log.counts()).runs == 1


async def test_a_cancel_at_another_replica_reaches_the_player(sites):
    """RS-53: the tool in flight stands as unknown, as where it is asked for at home."""
    here, there = await pair(sites, SLOW)
    run = await here.run()
    await here.until_head(run["id"], 4)
    assert (await there.call("POST", f"/v1/runs/{run['id']}/cancel")).status == 202
    ended = await here.until_settled(run["id"])
    assert ended["status"] == "cancelled"
    (event,) = [block.json for block in await there.follow(run["id"]) if block.name == "run.cancelled"]
    assert len(event["data"]["operations"]["unknown"]) == 1


async def test_a_run_of_the_session_on_another_replica_is_superseded(sites):
    here, there = await pair(sites)
    first = await here.run({"input": {"scenario": "open"}, "session_id": "s"})
    assert (await there.create({"input": "x", "session_id": "s"}, key="k2")).code == "session_busy"
    second = await there.create({"input": "x", "session_id": "s", "on_active": "cancel"}, key="k3")
    assert second.status == 201
    assert (await here.get(f"/v1/runs/{first['id']}")).json["status"] == "cancelled"


async def test_a_pause_is_answered_at_another_replica(sites):
    """RS-55, RS-56: and its continuation is played there."""
    asks = Script(
        name="asks", clock="virtual",
        steps=(Ask(actions=(Action(id="a", tool="charge"),), approved=(Say(text="done"),)),),
    )  # fmt: skip
    here, there = await pair(sites, asks)
    paused = await here.settled()
    answer = {"continues": paused["id"], "responses": [{"action_id": "a", "decision": "approve"}]}
    answers = await asyncio.gather(here.create(answer, key="x"), there.create(answer, key="y"))
    assert sorted(each.status for each in answers) == [200, 201]
    (after,) = {each.json["id"] for each in answers}
    assert (await there.until_settled(after))["status"] == "completed"


async def test_a_token_that_is_revoked_at_one_is_good_at_none(sites):
    here, there = await pair(sites, tokens=parse_tokens(["alice a"]))
    caller = here.engine.settings.tokens.caller("a")
    assert (await there.get("/v1/runs/x", {"Authorization": "Bearer a"})).status == 404
    await here.engine.revoke(caller.token)
    await there.until(lambda: caller.token in there.engine.revoked)
    assert (await there.get("/v1/runs/x", {"Authorization": "Bearer a"})).status == 401


async def test_a_run_is_its_principals_at_every_replica(sites):
    """RS-65, RS-66, RS-67: with any token of theirs; to others it is as absent as one that never was, cursor or not."""
    here, there = await pair(sites, tokens=parse_tokens(["alice a", "alice a2", "bob b"]))
    mine, renewed, other = ({"Authorization": f"Bearer {token}"} for token in ("a", "a2", "b"))
    run = (await here.create({"input": "x"}, key="k", **mine)).json
    await here.until_settled(run["id"], mine)
    await here.engine.revoke(here.engine.settings.tokens.caller("a").token)
    await there.until(lambda: there.engine.revoked)
    path = f"/v1/runs/{run['id']}/events?after={run['epoch']}.1"
    assert (await there.get(path, mine)).status == 401
    assert (await there.get(path, renewed)).json["events"][0]["sequence"] == 2
    absent = path.replace(run["id"], "run_0")
    answers = [(await there.get(each, other)) for each in (path, absent)]
    assert [(each.status, each.code) for each in answers] == [(404, "run_not_found")] * 2
    again = await there.create({"input": "x"}, key="k", **other)
    assert (again.status, again.json["id"] == run["id"]) == (201, False)


async def test_a_new_epoch_begun_at_one_closes_the_streams_of_all(sites):
    """RS-35: and the replica that played the run writes to it no more."""
    here, there = await pair(sites)
    run = await here.run({"input": {"scenario": "open"}})
    await here.until_head(run["id"], 3)
    stream = here.attach(run["id"])
    for _ in range(4):
        await stream.block()
    await there.engine.new_epoch(run["id"])
    closing = await stream.block()
    assert (closing.name, closing.json) == ("stream.closing", {"reason": "epoch_changed"})
    assert [run.id for run in await there.engine.log.owned()] == [run["id"]]


async def test_a_run_whose_replica_died_goes_on_at_another(sites):
    """RS-45, RS-62: what was done is not done again; the reader at the other replica sees it go on."""
    script = Script(name="s", steps=(Tool(tool="charge"), Wait(ms=400), Say(text="and on")))
    here, there = await pair(sites, script, lease=0.5)
    run = await here.run()
    await here.until_head(run["id"], 4)
    stream = there.attach(run["id"])
    die(here)
    blocks = await stream.blocks()
    assert [block.json["sequence"] for block in blocks[1:]] == list(range(1, len(blocks)))
    assert blocks[-1].name == "run.completed"
    counts = await there.engine.log.counts()
    assert (counts.effects, counts.effect_attempts) == (1, 1)


async def test_a_replica_that_slept_finds_its_run_taken_and_its_player_ends(sites):
    """RS-86: awake again it appends nothing, and reads what the other has made of the run."""
    script = Script(name="s", steps=(Status(text="a"), Wait(ms=300), Status(text="b"), Wait(ms=300), Status(text="c")))
    here, there = await pair(sites, script)
    run = await here.run()
    await here.until_head(run["id"], 3)
    record = await there.engine.log.run(run["id"])
    await there.engine.adopt(record)
    assert (await there.until_settled(run["id"]))["status"] == "completed"
    await here.until(lambda: not here.engine.players.playing())
    assert await types(here, run["id"]) == ["run.created", "run.started", *["status"] * 3, "run.completed"]


async def test_a_server_that_drains_hands_its_runs_over_at_once(sites):
    """RS-64: long before its lease would have ended."""
    here, there = await pair(
        sites, Script(name="s", steps=(Status(text="a"), Wait(ms=200), Status(text="b"))), lease=1.5
    )
    run = await here.run()
    await here.until_head(run["id"], 3)
    await here.engine.stop()
    assert (await there.until_settled(run["id"]))["status"] == "completed"


async def test_a_scenario_that_a_replica_was_not_given_is_left_to_others(sites, caplog):
    url = empty_database()
    here = await sites(OPEN, log=RedisLog(url, lease=0.3))
    other = await sites(QUICK, log=RedisLog(url, lease=0.3))
    run = await here.run()
    await here.engine.stop()
    await other.until(lambda: "was not given" in caplog.text)
    third = await sites(OPEN, log=RedisLog(url, lease=0.3))
    await third.until(lambda: third.engine.players.plays(run["id"]))


async def test_streams_wait_for_a_redis_that_restarts_and_runs_go_on(sites):
    """RS-61: calls are refused meanwhile, with a time to come again; nothing is lost and nothing comes twice."""
    server = RedisServer()
    try:
        script = Script(name="s", steps=(Say(text=" ".join(map(str, range(40))), every_ms=20),))
        here, there = await pair(sites, script, url=server.url, lease=1.0)
        run = await here.run()
        stream = there.attach(run["id"])
        seen = [await stream.block() for _ in range(10)]
        server.kill()
        refused = await here.get(f"/v1/runs/{run['id']}")
        assert (refused.status, refused.code, "retry-after" in refused.headers) == (503, "overloaded", True)
        server.start()
        seen += await stream.blocks()
        assert [block.json["sequence"] for block in seen[1:] if block.id] == list(range(1, 45))
        assert seen[-1].name == "run.completed"
    finally:
        for site in (here, there):
            await site.engine.stop()
        server.remove()


async def test_an_older_copy_of_redis_closes_streams_and_the_run_goes_on_in_a_new_epoch(sites, tmp_path):
    """RS-35, RS-87: old cursors are refused, what comes next has other ones, and the run is taken over and goes on."""
    server = RedisServer()
    try:
        here, there = await pair(sites, url=server.url, lease=1.0)
        run = await here.run({"input": {"scenario": "open"}})
        await here.until_head(run["id"], 3)
        server.copy(tmp_path / "copy")
        await here.append(run["id"], "lost", "too")
        run_writer = (await here.engine.log.run(run["id"])).writer
        stream = there.attach(run["id"])
        seen = [await stream.block() for _ in range(6)]
        server.restore(tmp_path / "copy")
        closing = await stream.block()
        assert (closing.name, closing.json) == ("stream.closing", {"reason": "epoch_changed"})
        refused = await here.get(f"/v1/runs/{run['id']}/events?after={seen[-1].id}")
        assert (refused.status, refused.code) == (410, "epoch_changed")
        async with asyncio.timeout(PATIENCE):
            while (await there.engine.log.run(run["id"])).writer < run_writer + 2:  # noqa: ASYNC110 (whoever is first)
                await asyncio.sleep(0.02)
        await there.append(run["id"], "other")
        blocks = there.attach(run["id"])
        again = [await blocks.block() for _ in range(5)][1:]
        assert [block.json["sequence"] for block in again] == [1, 2, 3, 4]
        assert {block.id.partition(".")[0] for block in again} == {run["epoch"].replace("-1", "-2")}
        assert again[-1].json["data"] == {"name": "other"}
    finally:
        for site in (here, there):
            await site.engine.stop()
        server.remove()


async def test_a_run_whose_create_got_no_answer_is_played_all_the_same(sites, monkeypatch):
    """It may have been written: whoever asks again with the key finds a run that goes on."""
    monkeypatch.setattr("reattach_mockserver.engine.replicas._PAUSE", 0.01)

    class Deaf(MemoryLog):
        async def create(self, *args, **options):
            await super().create(*args, **options)
            raise LogUnavailable("no answer")

    site = await sites(log=Deaf())
    assert (await site.create({"input": "x"}, key="k")).status == 503
    again = await site.create({"input": "x"}, key="k")
    assert again.status == 200
    assert (await site.until_settled(again.json["id"]))["status"] == "completed"


async def test_a_run_that_the_log_could_not_keep_up_with_is_gone_on_with(sites, monkeypatch):
    """RS-62: it does not stand as running for ever, and it does not fail for a log that comes back."""
    monkeypatch.setattr("reattach_mockserver.engine.replicas._PAUSE", 0.01)
    monkeypatch.setattr("reattach_mockserver.engine.insisting._FIRST_PAUSE", 0.0001)

    class Away(MemoryLog):
        failures = 30

        async def append(self, *args, **options):
            if self.failures:
                self.failures -= 1
                raise LogUnavailable("away")
            return await super().append(*args, **options)

    site = await sites(log=Away())
    assert (await site.settled())["status"] == "completed"


async def test_an_orphan_whose_takeover_got_no_answer_is_played_all_the_same(sites, monkeypatch):
    """RS-62: it is this replica's, so no other one would take it."""
    monkeypatch.setattr("reattach_mockserver.engine.replicas._PAUSE", 0.01)

    class Deaf(MemoryLog):
        takes = 0

        async def orphans(self, limit=None):
            return () if self.takes else await self.unfinished()

        async def take_over(self, *args):
            self.takes += 1
            run = await super().take_over(*args)
            if self.takes == 1:
                raise LogUnavailable("no answer")
            return run

    site = await sites(OPEN, log=Deaf())
    run = await site.run()
    site.engine.players.drop(run["id"])
    site.engine._replicas.orphaned()
    await site.until(lambda: site.engine.players.plays(run["id"]))
    assert site.engine.log.takes == 2


async def test_each_connection_may_come_to_another_replica(sites):
    """RS-12, RS-60, RS-63, B87: broken after every event, from the one to the other: each once, in order, of one log."""
    first, second = await pair(sites, QUICK)
    run = await first.run()
    seen = []
    while not seen or seen[-1].json["type"] != "run.completed":
        site = (first, second)[len(seen) % 2]
        exchange = site.attach(run["id"], f"?after={run['epoch']}.{len(seen)}")
        attached = (await exchange.block()).json
        assert attached["cursor_id"] == (seen[-1].json["id"] if seen else None)
        seen.append(await exchange.block())
        await exchange.close()
    assert [block.json["sequence"] for block in seen] == list(range(1, 8))


async def test_who_saw_a_run_settle_at_one_begins_the_next_of_its_session_at_the_other(sites):
    """RS-50, RS-91: settled is settled everywhere at the same moment."""
    first, second = await pair(sites, QUICK)
    for number in range(4):
        here, there = (first, second) if number % 2 else (second, first)
        run = (await here.create({"input": number, "session_id": "s"}, key=f"here-{number}")).json
        await here.follow(run["id"])
        assert (await there.get(f"/v1/runs/{run['id']}")).json["status"] == "completed"
        answer = await there.create({"input": "next", "session_id": "s"}, key=f"there-{number}")
        assert answer.status == 201
        await there.follow(answer.json["id"])
