"""Deterministic mode: the same creates give the same bytes, an event a chunk, in every process."""

import pytest

from mockserver_stage import QUICK
from reattach_mockserver.engine.identity import RandomNames, SeededNames
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import Parallel, Say, Script, Tool, Wait

pytestmark = pytest.mark.anyio

TIMED = Script(
    name="timed",
    seed=5,
    steps=(
        Say(text="a b c", every_ms=2),
        Parallel(branches=((Say(text="d e"), Wait(ms=3)), (Tool(tool="t", takes_ms=3, result=1),))),
    ),
)


async def everything(site):
    """Create twice, and return all bytes that are read of it."""
    answers = []
    for key in ("one", "two"):
        made = await site.create({"input": "x"}, key=key)
        run = await site.until_settled(made.json["id"])
        exchange = site.attach(run["id"])
        _, headers = await exchange.started()
        page = await site.get(f"/v1/runs/{run['id']}/events")
        answers.append((made.body, made.headers, run, headers, await exchange.rest(), exchange.chunks, page.body))
    return answers


@pytest.mark.parametrize("script", [QUICK, TIMED])
async def test_two_servers_give_the_same_bytes(sites, script):
    """Also where real time passes: events carry the script's time."""
    first = await everything(await sites(script, deterministic=True))
    second = await everything(await sites(script, deterministic=True))
    assert first == second


async def test_another_seed_gives_other_ids(sites):
    first = await (await sites(deterministic=True, seed=1)).run()
    second = await (await sites(deterministic=True, seed=2)).run()
    assert first["id"] != second["id"]


async def test_an_event_is_one_chunk(sites):
    site = await sites(QUICK, deterministic=True)
    run = await site.settled()
    exchange = site.attach(run["id"])
    await exchange.rest()
    assert len(exchange.chunks) == 1 + 7
    assert all(chunk.endswith(b"\n\n") and chunk.count(b"\n\n") == 1 for chunk in exchange.chunks)


async def test_discovery_shows_it(sites):
    assert (await (await sites(deterministic=True)).get("/.well-known/reattach")).json["deterministic"] is True


async def test_ids_do_not_begin_again_after_a_restart(sites, tmp_path):
    """The count goes on with the log: a second run never gets the first one's id."""
    first = await sites(QUICK, deterministic=True, log=SqliteLog(tmp_path / "log.db"))
    one = await first.settled()
    await first.close()
    second = await sites(QUICK, deterministic=True, log=SqliteLog(tmp_path / "log.db"))
    two = await second.run(Idempotency_Key="another")
    assert one["id"] != two["id"]


async def test_times_have_one_width(sites):
    site = await sites(TIMED, deterministic=True)
    run = await site.settled()
    events = (await site.get(f"/v1/runs/{run['id']}/events")).json["events"]
    assert {len(event["time"]) for event in events} == {len("2026-01-01T00:00:00.000Z")}
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)


def test_seeded_names_repeat_and_random_ones_do_not():
    assert SeededNames(1, 0).run() == SeededNames(1, 0).run()
    assert RandomNames().run() != RandomNames().run()
    assert len({SeededNames(1, 0).run(), SeededNames(1, 1).run(), SeededNames(2, 0).run()}) == 3
