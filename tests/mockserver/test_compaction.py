"""A log that lets go of events keeps what they amount to: snapshots, cursors and retries are as if it had kept them all."""

import json

import pytest

from mockserver_stage import quiet
from reattach_mockserver.engine.compaction import _MANY
from reattach_mockserver.engine.publisher import entry
from reattach_mockserver.engine.work import Completed, Desk, Note, Outcome
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.logs.redis.log import RedisLog
from reattach_mockserver.moment import moment
from reattach_mockserver.scenarios.script import Limits, Say, Script
from redis_stage import empty_database, shared_server

pytestmark = pytest.mark.anyio

LONG = Script(
    name="long", clock="virtual", limits=Limits(retention_events=20),
    steps=tuple(Say(text=f"{n} a b c d e f g h i j k l m n o p q r s t") for n in range(30)),
)  # fmt: skip
"""About seven hundred events, of which retention keeps twenty."""


async def publish(site, run_id: str, number: int) -> None:
    """Append pieces of a message as the engine's own players do, thirty at a time."""
    piece = {"message_id": "m", "text": "x"}
    run = await site.engine.log.run(run_id)
    for start in range(0, number, 30):
        names = [f"n{each}" for each in range(start, min(start + 30, number))]
        entries = [entry(run, name, "message.delta", piece, time=moment(0), at=0) for name in names]
        run = await site.engine._publisher.publish(run, entries, site.engine.limits(run).retention_events)


def kept_in_redis(log: RedisLog, run_id: str) -> int:
    with shared_server().client() as client:
        client.select(int(log.name.rpartition("/")[2]))
        return client.xlen(f"reattach:run:{run_id}:events")


async def test_a_snapshot_after_compaction_is_that_of_a_log_that_kept_all(sites):
    """RS-25, RS-27: byte for byte but for ids; of the events themselves only few more than retention wants are left."""
    memory, redis = MemoryLog(), RedisLog(empty_database())
    snapshots = []
    for log in (memory, redis):
        site = await sites(LONG, log=log)
        run = await site.settled()
        snapshot = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json
        assert snapshot["cursor_id"] == await log.event_id(run["id"], run["last_sequence"])
        text = json.dumps({name: snapshot[name] for name in ("sequence", "status", "messages", "tool_calls")})
        snapshots.append(text.replace(run["id"].removeprefix("run_"), "RUN"))
        assert run["first_sequence"] == run["last_sequence"] - 19
    assert snapshots[0] == snapshots[1]
    assert kept_in_redis(redis, run["id"]) < 20 + 2 * _MANY < run["last_sequence"]


async def test_the_first_sequence_is_honest_and_its_cursor_is_named(sites):
    """RS-31, RS-32: inside the stated retention everything is there; just outside it is refused, not silently less."""
    log = RedisLog(empty_database())
    site = await sites(LONG, log=log)
    run = await site.settled()
    first = run["first_sequence"]
    path = f"/v1/runs/{run['id']}/events?limit=1000"
    page = (await site.get(f"{path}&after=earliest")).json
    assert [event["sequence"] for event in page["events"]] == list(range(first, run["last_sequence"] + 1))
    assert page["cursor_id"] == page["events"][0]["prev_id"] is not None
    refused = await site.get(f"{path}&after={run['epoch']}.{first - 2}")
    assert (refused.status, refused.code) == (410, "cursor_expired")


async def test_another_replica_folds_on_from_what_was_kept(sites):
    """Its own fold began before the events went; no snapshot was handed out, which would have kept them for a minute."""
    url = empty_database()
    here, there = [await sites(quiet(retention_events=5), log=RedisLog(url)) for _ in range(2)]
    run = await here.run()
    await here.until_head(run["id"], 3)
    before = await there.engine._folds.at(await there.engine.log.run(run["id"]))
    await publish(here, run["id"], 3 * _MANY)
    assert before["sequence"] == 3
    after = await there.engine._folds.at(await there.engine.log.run(run["id"]))
    assert after["sequence"] == 3 + 3 * _MANY
    assert after["messages"][0]["text"] == "x" * 3 * _MANY
    assert kept_in_redis(here.engine.log, run["id"]) < 2 * _MANY


async def test_an_event_that_was_let_go_of_is_not_appended_again(sites):
    """RS-85: it is known by its id for ever."""
    log = RedisLog(empty_database())
    site = await sites(quiet(retention_events=5), log=log)
    run = await site.run()
    await site.until_head(run["id"], 3)
    await publish(site, run["id"], 2 * _MANY)
    before = await log.run(run["id"])
    assert (await log.read(run["id"], 0, 1, 1 << 20))[0].sequence > 4
    await publish(site, run["id"], 1)
    assert await log.run(run["id"]) == before


async def test_the_events_of_a_plug_in_stay_while_it_works(sites):
    """It may begin anew in another process, and looks at what it has published."""

    async def work(desk: Desk) -> Outcome:
        await desk.publish_all([Note(step=str(number), type="note", data={}) for number in range(2 * _MANY)])
        return Completed(len([event async for event in desk.events()]))

    log = RedisLog(empty_database())
    site = await sites(LONG, works={"work": work}, log=log)
    run = await site.settled({"input": {"scenario": "work"}})
    assert run["result"] == 2 + 2 * _MANY
