"""A request that another instance of the server answers: our client notices nothing, and nothing of the two stays behind."""

import asyncio
import contextlib
import os
import select
import signal
from urllib.parse import urlsplit

import pytest

from chaos_cases import SESSION, faults
from reattach_chaos.cases import player
from reattach_chaos.cases.client import OwnClient
from reattach_chaos.cases.errands import objection_to
from reattach_chaos.cases.reach import unreached
from reattach_chaos.cases.sample import other_instances
from reattach_chaos.cases.servers import own_redis
from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.cases.servers.own_redis import OwnRedis
from reattach_chaos.cases.servers.own_server import begun, needs_own, needs_two
from reattach_chaos.cases.theatre import Bill, theatre
from reattach_chaos.demo.child import Child
from reattach_chaos.history import Created, Delivered, Effect, Logged
from reattach_chaos.schedules import Fault, Place, Planned, at
from redis_stage import required

OWN = OwnClient(None, None)
NURSERY = "reattach_chaos.cases.processes.nursery"
PATIENCE = 120.0
FIN = Planned(fault=Fault.FIN, at=at(Place.AFTER_EVENT, 2))

pytestmark = pytest.mark.slow


def other(route="stream", nth=1):
    return Planned(fault=Fault.OTHER_INSTANCE, at=at(Place.CONNECTING), route=route, nth=nth)


def restart(place, event=None, route="stream", signal="kill"):
    settings = {"signal": signal, "down_ms": 50}
    return Planned(fault=Fault.SERVER_RESTART, at=at(place, event), route=route, settings=settings)


CREATE, RESUME = other_instances(0, "")
EVERY = faults(other(nth="every"), FIN)
RESTARTED = faults(other("create"), restart(Place.AFTER_EVENT, 3))
STEP = faults(other(), restart(Place.APPENDED, 3, route=None))
REPLACED = faults(Planned(fault=Fault.NEW_EPOCH, at=at(Place.AFTER_EVENT, 2), settings={"keep": 1}), FIN, other(nth=2))
CASES = {"create": CREATE, "resume": RESUME, "every": EVERY, "restarted": RESTARTED, "step": STEP, "replaced": REPLACED}


@contextlib.asynccontextmanager
async def apart(making, schedule, folder, steps=(), *, log="", name="server"):
    """Begin a server of a case; the second instance has a log of its own, of which the first knows nothing."""
    log = str(folder / "apart.db") if name == "second" else log
    async with begun(making, schedule, folder, steps, log=log, name=name) as server:
        yield server


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """All on one stage; then one with instances that share no log; the last is whether the Redis is gone."""
    required()

    async def play():
        async with theatre(Bill(backend="embedded", seed=3)) as stage:
            found = await asyncio.gather(*map(stage.player.play, CASES.values()))
            async with stage.player.stage.making.redis.database() as address:
                reader, writer = await connected(address)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(player, "begun", apart)
                wrong = await stage.player.play(RESUME)
        gone = await asyncio.wait_for(reader.read(1), PATIENCE) == b""
        writer.close()
        return {case.id: case for case in found}, wrong, gone

    return asyncio.run(play())


async def connected(address):
    parts = urlsplit(address)
    return await asyncio.open_connection(parts.hostname, parts.port)


@pytest.mark.parametrize("name", CASES)
def test_a_client_notices_nothing_of_another_instance(cases, name):
    """All that was planned came, no law is broken, each event was shown once; of a log that was replaced, again."""
    case = cases[0][CASES[name].id]
    assert case.verdict.word == "valid", case.verdict.sentence()
    assert case.verdict.fired == case.verdict.planned == len(CASES[name].faults)
    shown, logged = ([each.id for each in case.history.of(kind)] for kind in (Delivered, Logged))
    again = name == "replaced"  # the new log keeps the first event of the old one
    assert len(set(shown)) == len(shown) - again > 0
    assert again or len(shown) == len(logged)


def test_a_run_that_another_instance_makes_is_one_run(cases):
    """Its work is done once, and the first instance shows it."""
    history = cases[0][CREATE.id].history
    assert (len(history.of(Created)), len(history.of(Effect))) == (1, 1)


def test_it_is_the_second_instance_that_answers(cases):
    """One that does not share the log knows nothing of the run, and the client leaves with what it was shown before."""
    history = cases[1].history
    assert len(history.of(Delivered)) < len(history.of(Logged))


def test_the_redis_of_a_run_ends_with_it(cases):
    """A connection to it that was open all the time has come to its end."""
    assert cases[2]


def test_a_case_has_a_database_for_itself_and_the_nursery_takes_the_redis_with_it(tmp_path):
    """What a case leaves is forgotten; who has not the password is turned off; after kill -9 nothing stays."""
    required()
    redis = pytest.importorskip("redis.asyncio")

    async def play():
        nursery = await Child.spawn("nursery", NURSERY, str(tmp_path / "nursery"), folder=tmp_path)
        kept = OwnRedis(tmp_path / "nursery", tmp_path)
        try:
            await nursery.first_line(PATIENCE)
            assert not (tmp_path / "redis").exists(), "nothing is started before it is needed"
            async with kept.database() as one, kept.database() as two:
                assert one != two
                async with redis.Redis.from_url(one) as first, redis.Redis.from_url(two) as second:
                    pid = (await first.info("server"))["process_id"]
                    await first.set("a", "1")
                    assert await second.get("a") is None
                reader, writer = await connected(one)
                writer.write(b"PING\r\n")
                assert (await reader.readline()).startswith(b"-NOAUTH")
            async with kept.database() as again, redis.Redis.from_url(again) as first:
                assert again in (one, two)
                assert await first.dbsize() == 0
            assert sorted(each.name for each in (tmp_path / "redis").iterdir()) == ["redis.conf", "stderr"]
            process = os.pidfd_open(pid)
            try:
                nursery.kill()
                ended, _, _ = await asyncio.to_thread(select.select, [process], [], [], PATIENCE)
                assert ended
            finally:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                os.close(process)
            writer.close()
        finally:
            await kept.end()
            await nursery.end()

    asyncio.run(asyncio.wait_for(play(), PATIENCE))


def test_a_redis_that_does_not_start_is_the_stages_trouble(tmp_path, monkeypatch):
    """Its last words are said, and nothing is judged."""
    broken = tmp_path / "redis-server"
    broken.write_text("#!/bin/sh\necho it is broken\n")
    broken.chmod(0o755)
    monkeypatch.setattr(own_redis.shutil, "which", lambda name: str(broken))

    async def play():
        nursery = await Child.spawn("nursery", NURSERY, str(tmp_path / "nursery"), folder=tmp_path)
        kept = OwnRedis(tmp_path / "nursery", tmp_path)
        try:
            await nursery.first_line(PATIENCE)
            with pytest.raises(ServerTrouble, match="did not start: it is broken"):
                async with kept.database():
                    pass
        finally:
            await kept.end()
            await nursery.end()

    asyncio.run(asyncio.wait_for(play(), PATIENCE))


def test_where_there_is_no_redis_or_the_server_is_not_ours_it_is_said(monkeypatch):
    """Such a case is not begun."""
    assert "only a server of ours" in objection_to(RESUME, SESSION, OWN, "follow", kill=False, own=False)
    monkeypatch.setattr(own_redis.shutil, "which", lambda name: None)
    assert objection_to(RESUME, SESSION, OWN, "follow", kill=False) == "no redis-server here"
    monkeypatch.setattr(own_redis.shutil, "which", lambda name: "/redis-server")
    monkeypatch.setattr(own_redis.importlib.util, "find_spec", lambda name: None)
    assert "pip install" in objection_to(RESUME, SESSION, OWN, "follow", kill=False)


def test_a_server_ends_at_a_step_of_its_own_where_it_makes_the_run(monkeypatch):
    """Not where another instance does; that one goes on."""
    assert unreached(STEP, SESSION) == ""
    elsewhere = faults(other("create"), restart(Place.APPENDED, 3, route=None))
    assert "instance that makes the run" in unreached(elsewhere, SESSION)
    assert [needs_own(each) and needs_two(each) for each in (STEP, faults(restart(Place.IDLE, 2)))] == [True, False]
