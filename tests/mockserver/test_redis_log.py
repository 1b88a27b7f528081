"""What a log on Redis promises beyond the contract: several replicas, faults of the way and of Redis, what is declared."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reattach_mockserver.event import Entry, Operation
from reattach_mockserver.logs.base import Answers, Effect, LogUnavailable, RunRecord, WriterLost
from reattach_mockserver.logs.pause import PauseRecord
from reattach_mockserver.logs.redis import link, subscription
from reattach_mockserver.logs.redis.keys import WAKES
from reattach_mockserver.logs.redis.log import RedisLog
from reattach_mockserver.moment import moment
from redis_relay import Relay
from redis_stage import RedisServer, empty_database, required, shared_server

pytestmark = pytest.mark.anyio

PATIENCE = 30.0
ROOM = 1 << 20
LONG = 3_600.0  # a lease that does not end within a test


@pytest.fixture(autouse=True)
def a_redis() -> None:
    required()


class Ear:
    """Hears, and waits for what it wants to hear."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.ever: list[str] = []
        self._more = asyncio.Event()

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        self.ever.append(what)
        self._more.set()

    def changed(self, run_id: str) -> None:
        self._hear(f"changed {run_id}")

    def orphaned(self) -> None:
        self._hear("orphaned")

    def revoked(self, token: str) -> None:
        self._hear(f"revoked {token}")

    def missed(self) -> None:
        self._hear("missed")

    async def hears(self, what: str) -> None:
        """Wait for it, and forget what came up to it."""
        async with asyncio.timeout(PATIENCE):
            while what not in self.heard:
                self._more.clear()
                await self._more.wait()
        del self.heard[: self.heard.index(what) + 1]


@asynccontextmanager
async def opened(url: str, *, lease: float = LONG, ear: Ear | None = None) -> AsyncIterator[RedisLog]:
    log = RedisLog(url, lease=lease)
    if ear is not None:
        log.listen(ear)
    await log.open()
    try:
        yield log
    finally:
        await log.close()


async def die(log: RedisLog) -> None:
    """End a replica as SIGKILL does: nothing is said and nothing let go of."""
    log._lease._task.cancel()
    log._lease._task = None


def a_run(name: str = "a", *, key: str | None = None, session: str | None = None) -> RunRecord:
    return RunRecord(
        id=f"run_{name}", number=0, principal="p", key=key or f"key-{name}", digest="d",
        session_id=session or f"ses_{name}", script="hello", created_at=moment(0), metadata=None, token="",
    )  # fmt: skip


def an_entry(name: str, *, status: str | None = None, run: str = "a", time: int = 0) -> Entry:
    return Entry(
        id=f"evt_{run}_{name}", step=name, type="note", time=moment(time), at=time, data=f'{{"name":"{name}"}}',
        status=status, outcome="{}" if status else None,
    )  # fmt: skip


async def created(log: RedisLog, name: str = "a") -> RunRecord:
    run, made = await log.create(a_run(name), [an_entry("created", run=name)])
    assert made
    return run


async def bodies(log: RedisLog, run_id: str = "run_a") -> list[bytes]:
    return [event.body for event in await log.read(run_id, 0, 10_000, ROOM)]


async def sure(ask: Callable[[], Awaitable[Any]]) -> Any:
    """Repeat one call for as long as its outcome is not known, as the law allows."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(LogUnavailable):
                return await ask()
            await asyncio.sleep(0.01)


# Several replicas


async def test_creates_of_one_key_over_two_replicas_make_one_run():
    """B43, RS-42: whichever is first makes it, all others get it, at whatever replica they ask."""
    url = empty_database()
    async with opened(url) as one, opened(url) as two:
        answers = await asyncio.gather(
            *(
                log.create(a_run(f"r{n}", key="one", session=f"s{n}"), [an_entry("created", run=f"r{n}")])
                for n, log in enumerate([one, two] * 10)
            )
        )
        assert sum(made for _, made in answers) == 1
        assert len({run.id for run, _ in answers}) == 1
        assert (await two.counts()).runs == 1


async def test_runs_of_two_replicas_have_numbers_of_one_row():
    url = empty_database()
    async with opened(url) as one, opened(url) as two:
        runs = await asyncio.gather(*(created(log, f"r{n}") for n, log in enumerate([one, two] * 10)))
        assert sorted(run.number for run in runs) == list(range(1, 21))
        assert [run.number for run in await one.runs(0, 100)] == list(range(1, 21))


async def test_producers_on_two_replicas_share_one_order():
    """RS-21: sequences without holes, every event linked to the one before it, whichever replica gave its number."""
    url = empty_database()
    async with opened(url) as one, opened(url) as two:
        run = await created(one)

        async def produce(log: RedisLog, name: str) -> None:
            for number in range(10):
                await log.append("run_a", run.writer, [an_entry(f"{name}{number}")])

        await asyncio.gather(*(produce(log, f"{n}x") for n, log in enumerate([one, two, one, two])))
        events = [json.loads(body) for body in await bodies(two)]
        assert [event["sequence"] for event in events] == list(range(1, 42))
        assert [event["prev_id"] for event in events[1:]] == [event["id"] for event in events[:-1]]


async def test_no_replica_is_behind_what_another_has_shown():
    """RS-50, RS-52, RS-63: right after an append is answered, and alternating: record, events and unfinished runs are there."""
    url = empty_database()
    async with opened(url) as one, opened(url) as two:
        run = await created(one)
        for number in range(20):
            here, there = (one, two) if number % 2 else (two, one)
            record, _ = await here.append("run_a", run.writer, [an_entry(str(number))])
            assert await there.run("run_a") == record
            assert (await there.read("run_a", record.last_sequence - 1, 9, ROOM))[0].sequence == record.last_sequence
        await one.append("run_a", run.writer, [an_entry("end", status="completed")])
        assert await two.unfinished() == ()
        assert (await two.create(a_run("b", session="ses_a"), [an_entry("created", run="b")]))[1], (
            "RS-91: the session is free"
        )


async def test_a_former_owner_that_wakes_is_refused():
    """RS-86: it knows the run as it left it, and what it knows is of no use."""
    url = empty_database()
    async with opened(url) as owner, opened(url) as other:
        run = await created(owner)
        await owner.append("run_a", run.writer, [an_entry("b")])
        taken = await other.take_over("run_a", run.writer)
        await other.append("run_a", taken.writer, [an_entry("c")])
        with pytest.raises(WriterLost):
            await owner.append("run_a", run.writer, [an_entry("zombie")])
        with pytest.raises(WriterLost):
            await owner.claim("run_a", run.writer, "op")
        assert len(await bodies(owner)) == 3
        with pytest.raises(WriterLost):
            await owner.take_over("run_a", run.writer)
        assert (await owner.owned(), [each.id for each in await other.owned()]) == ((), ["run_a"])


async def test_others_are_told_what_one_has_changed():
    """Events, cancels and tokens; of what it did itself a replica hears nothing."""
    url, ears = empty_database(), (Ear(), Ear())
    async with opened(url, ear=ears[0]) as one, opened(url, ear=ears[1]) as two:
        run = await created(one)
        await one.append("run_a", run.writer, [an_entry("b")])
        await ears[1].hears("changed run_a")
        await two.ask_cancel("run_a", "requested")
        await ears[0].hears("changed run_a")
        await two.revoke("t")
        await ears[0].hears("revoked t")
        await created(one, "c")
        await one.ask_cancel("run_c", "requested")
        await ears[1].hears("changed run_c")
        assert set(ears[1].ever) == {"missed", "changed run_a", "changed run_c"}
        assert ears[1].ever.count("changed run_a") == 1, "of its own cancel it hears nothing"


async def test_a_log_in_another_database_of_the_same_redis_is_another_log():
    urls, ear = (empty_database(), empty_database()), Ear()
    async with opened(urls[0], ear=ear) as here, opened(urls[1]) as other, opened(urls[0]) as there:
        await created(other)
        await other.ask_cancel("run_a", "requested")
        await other.revoke("t")
        await created(there, "b")
        await there.ask_cancel("run_b", "requested")
        await ear.hears("changed run_b")
        assert not {"changed run_a", "revoked t"} & set(ear.ever)
        assert (await here.run("run_a"), await here.revoked()) == (None, frozenset())


async def test_thousands_of_events_go_in_one_append_and_out_in_one_renewal():
    """More words than one command of a script can have."""
    async with opened(empty_database()) as log:
        run = await created(log)
        entries = [an_entry(f"n{number}") for number in range(4_100)]
        record, _ = await log.append("run_a", run.writer, entries)
        assert (record.last_sequence, len(await log.steps("run_a"))) == (4_101, 4_101)
        renewed = await log.renew("run_a", keep=2)
        assert (renewed.last_sequence, len(await log.steps("run_a"))) == (2, 2)
        assert (await log.append("run_a", renewed.writer, entries))[0].last_sequence == 4_101


# Leases


async def test_the_runs_of_a_dead_replica_are_anybodys_and_go_to_one():
    """RS-62: within its lease; of two that want a run one gets it."""
    url, ears = empty_database(), (Ear(), Ear())
    async with opened(url, lease=0.4) as dead:
        await created(dead)
        await die(dead)
        async with opened(url, lease=0.4, ear=ears[0]) as one, opened(url, lease=0.4, ear=ears[1]) as two:
            await ears[0].hears("orphaned")
            await ears[1].hears("orphaned")
            (run,) = await one.orphans()
            taken = await asyncio.gather(
                *(log.take_over(run.id, run.writer) for log in (one, two)), return_exceptions=True
            )
            assert sorted(type(each).__name__ for each in taken) == ["RunRecord", "WriterLost"]
            assert await one.orphans() == ()


async def test_a_living_replicas_runs_are_its_own():
    url = empty_database()
    ear = Ear()
    async with opened(url, lease=0.3) as one, opened(url, lease=0.3, ear=ear) as two:
        await created(one)
        async with opened(url, lease=0.3) as third:
            await created(third, "b")
        await ear.hears("orphaned")
        assert [run.id for run in await two.orphans()] == ["run_b"], "the first one's lease was renewed meanwhile"


async def test_a_replica_that_ends_in_order_lets_go_at_once():
    url, ear = empty_database(), Ear()
    async with opened(url, ear=ear) as stays:
        async with opened(url) as goes:
            await created(goes)
        assert await stays.owned() == ()
        await ear.hears("orphaned")
        await stays.take_over("run_a")
        assert [run.id for run in await stays.owned()] == ["run_a"]


# The way to Redis


async def the_story(log: RedisLog, tag: str) -> None:
    """One of each write, each repeated until its outcome is known; `tag` is in all names of its runs."""
    a, b = f"a{tag}", f"b{tag}"
    run_a, run_b = f"run_{a}", f"run_{b}"

    def entry(name: str, **members: Any) -> Entry:
        return an_entry(name, run=a, **members)

    run, _ = await sure(lambda: log.create(a_run(a, session=tag), [entry("created")]))
    call = replace(entry("call"), operation=Operation(id=f"op{tag}", tool="charge", reversible=False))
    await sure(lambda: log.append(run_a, run.writer, [call]))
    claim = await sure(lambda: log.claim(run_a, run.writer, f"op{tag}"))
    effect = Effect(run_a, f"op{tag}", "charge", reversible=False, result="1")
    await sure(lambda: log.perform(effect, claim=claim.number))
    await sure(lambda: log.mark(run_a, "marked"))
    taken = await sure(lambda: log.take_over(run_a))
    await sure(lambda: log.append(run_a, taken.writer, [entry("b"), entry("c")], keep=3))
    await sure(lambda: log.pin(run_a, 3, 0, 60_000))
    await sure(lambda: log.trim(run_a, 3, 0))
    renewed = await sure(lambda: log.renew(run_a, keep=3))
    pause = replace(entry("pause", status="requires_action"), pause=PauseRecord(path="1").text())
    await sure(lambda: log.append(run_a, renewed.writer, [entry("again"), pause]))
    other = replace(a_run(b, session=tag), continues=run_a)
    answers = Answers('[{"action_id":"act","decision":"approve"}]', "approve", 5)
    after, made = await sure(lambda: log.create(other, [an_entry("created", run=b)], answers=answers))
    assert made, "whoever made it is told so, however often it has to ask"
    await sure(lambda: log.ask_cancel(run_b, "requested"))
    await sure(lambda: log.append(run_b, after.writer, [an_entry("end", status="cancelled", run=b)]))
    await sure(lambda: log.revoke(f"token{tag}"))


async def what_came_of_it(log: RedisLog, tag: str) -> str:
    """Return all that the story must leave, but for how often something was tried."""
    a, b = f"run_a{tag}", f"run_b{tag}"
    keys = [await log.by_key("p", f"key-a{tag}"), await log.by_key("p", f"key-b{tag}")]
    found = [
        [replace(run, incarnation=0, writer=0, number=0) for run in (await log.run(a), await log.run(b), *keys)],
        await bodies(log, a),
        await bodies(log, b),
        sorted(await log.steps(a)),
        [replace(effect, attempts=0) for effect in await log.effects(a)],
        await log.operation("p", f"op{tag}"),
        await log.unfinished(),
        await log.session("p", tag),
        f"token{tag}" in await log.revoked(),
    ]
    return repr(found).replace(tag, "TAG")


@pytest.mark.parametrize(
    ("where", "every"),
    [("after", 4), pytest.param("after", 1, marks=pytest.mark.slow), pytest.param("before", 1, marks=pytest.mark.slow)],
)
async def test_cut_at_any_command_a_repeated_call_leaves_what_one_would_have(where, every):
    """RS-85: before Redis saw it or after it did it, at every command of every write; nothing counts twice."""
    database = empty_database()
    async with Relay(shared_server().port, int(database.rpartition("/")[2])) as relay, opened(relay.url) as log:
        await the_story(log, "000.")
        expected, one = await what_came_of_it(log, "000."), await log.counts()
        stories = 0
        while relay.cuts or not stories:
            stories += 1
            assert stories < 200, "the story has no end"
            relay.arm(stories * every, where)
            await the_story(log, f"{stories:03}.")
            relay.disarm()
            assert await what_came_of_it(log, f"{stories:03}.") == expected, stories
        counts = await log.counts()
        assert (counts.runs, counts.events, counts.effects) == tuple(
            (stories + 1) * each for each in (one.runs, one.events, one.effects)
        )
    assert stories * every > 25, "the story has enough commands to be worth it"


async def test_who_waits_while_the_way_breaks_is_told_and_the_next_call_is_served():
    database = empty_database()
    async with Relay(shared_server().port, int(database.rpartition("/")[2])) as relay, opened(relay.url) as log:
        run = await created(log)
        relay.arm(1, "after")
        with pytest.raises(LogUnavailable):
            await log.append("run_a", run.writer, [an_entry("b")])
        record, stored = await log.append("run_a", run.writer, [an_entry("b")])
        assert (record.last_sequence, [event.sequence for event in stored]) == (2, [2])


async def test_who_is_cancelled_in_a_call_is_cancelled_wherever_it_stands():
    """Else a player that is to end would play on: redis-py waits by what swallows a cancellation, before Python 3.12."""
    async with opened(empty_database()) as log:
        ended = 0
        for turns in range(100):
            task = asyncio.create_task(log.run("run_a"))
            for _ in range(turns % 25):
                await asyncio.sleep(0)
            if not task.done():
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                ended += 1
        assert ended > 10
        assert await log.run("run_a") is None, "and the connections are as good as before"


async def test_of_many_who_ask_at_once_the_first_is_served_first(monkeypatch):
    """More than there are connections: else one of them may wait for as long as the others have something to ask."""
    monkeypatch.setattr(link, "_CONNECTIONS", 2)
    async with opened(empty_database()) as log:
        runs = [await created(log, f"r{number}") for number in range(16)]
        done = [0] * len(runs)
        spreads = []

        async def write(index: int) -> None:
            run = runs[index]
            for number in range(8):
                await log.append(run.id, run.writer, [an_entry(str(number), run=run.id.removeprefix("run_"))])
                done[index] += 1
                spreads.append(max(done) - min(done))

        await asyncio.gather(*map(write, range(len(runs))))
        assert max(spreads) <= 2


async def test_a_lost_subscription_is_noticed_and_made_again():
    """What was said meanwhile is not heard, and that is: everything is to be read again."""
    database, ear = empty_database(), Ear()
    port, number = shared_server().port, int(database.rpartition("/")[2])
    async with Relay(port, number) as relay, opened(relay.url, ear=ear) as here, opened(database) as there:
        run = await created(there)
        ear.heard.clear()
        relay.cut()
        await there.append("run_a", run.writer, [an_entry("b")])
        await ear.hears("missed")
        assert len(await bodies(here)) == 2
        await there.append("run_a", run.writer, [an_entry("c")])
        await ear.hears("changed run_a")


@pytest.mark.parametrize("words", [b"", b"word", b"\xff\xfe", b"{} word", b"{} run"])
async def test_words_that_it_does_not_know_do_not_deafen_a_replica(words):
    """Everybody may publish on a channel of Redis: what is heard after that is heard."""
    url, ear = empty_database(), Ear()
    async with opened(url, ear=ear) as here, opened(url) as there:
        run = await created(there)
        kin = f"{url.rpartition('/')[2]}.other".encode()
        await here._link.command("PUBLISH", WAKES, words.replace(b"{}", kin))
        await there.append("run_a", run.writer, [an_entry("b")])
        await ear.hears("changed run_a")


async def test_a_subscription_that_fell_silent_is_noticed(monkeypatch):
    """F4, half open: no end comes, and no sign of life either."""
    monkeypatch.setattr(subscription, "_QUIET", 0.1)
    database, ear = empty_database(), Ear()
    async with Relay(shared_server().port, int(database.rpartition("/")[2])) as relay, opened(relay.url, ear=ear):
        ear.heard.clear()
        relay.silent = True
        async with asyncio.timeout(PATIENCE):
            await relay.fewer_than(relay.links)
        relay.silent = False
        await ear.hears("missed")


# Redis itself


@pytest.fixture
def server():
    started = RedisServer()
    yield started
    started.remove()


async def test_all_that_was_answered_survives_a_crash_of_redis(server):
    """RS-61: same bytes, same epoch; the same objects go on."""
    async with opened(server.url) as log:
        run = await created(log)
        await log.append("run_a", run.writer, [an_entry(str(n)) for n in range(50)])
        before = (await log.run("run_a"), await bodies(log), await log.counts())
        server.restart()
        assert (await sure(lambda: log.run("run_a")), await bodies(log), await log.counts()) == before
        record, _ = await log.append("run_a", run.writer, [an_entry("after")])
        assert (record.epoch, record.last_sequence) == (run.epoch, 52)


async def test_while_redis_is_away_calls_fail_and_then_they_do_not(server):
    ear = Ear()
    async with opened(server.url, ear=ear) as log:
        await created(log)
        ear.heard.clear()
        server.kill()
        for ask in (lambda: log.run("run_a"), lambda: log.ask_cancel("run_a", "requested")):
            with pytest.raises(LogUnavailable):
                await ask()
        server.start()
        await ear.hears("missed")
        assert (await log.ask_cancel("run_a", "requested")).cancel_reason == "requested"


async def test_an_older_copy_of_redis_begins_new_epochs_of_what_it_lacks(server, tmp_path: Path):
    """RS-35, RS-87: found out by every replica that showed it, done by one; what it does not lack stays as it is."""
    async with opened(server.url) as one, opened(server.url) as two:
        a, b = await created(one, "a"), await created(one, "b")
        await one.append("run_a", a.writer, [an_entry("kept")])
        server.copy(tmp_path / "copy")
        await one.append("run_a", a.writer, [an_entry("lost"), an_entry("end", status="completed")])
        assert len(await bodies(two)) == 4
        assert (await two.run("run_a")).status == "completed"
        server.restore(tmp_path / "copy")
        seen = await asyncio.gather(*(sure(lambda log=log: log.run("run_a")) for log in (one, two)))
        assert {(run.epoch, run.status, run.last_sequence) for run in seen} == {("a-2", "queued", 2)}
        with pytest.raises(WriterLost):
            await one.append("run_a", a.writer, [an_entry("other")])
        assert (await two.run("run_b")) == b
        taken = await two.take_over("run_a")
        await two.append("run_a", taken.writer, [an_entry("other")])
        assert [json.loads(body)["sequence"] for body in await bodies(one)] == [1, 2, 3]


async def test_a_new_epoch_is_above_every_one_that_was_shown(server, tmp_path: Path):
    """An older copy has older epochs too: the number goes on from what a replica remembers."""
    async with opened(server.url) as log:
        await created(log)
        server.copy(tmp_path / "copy")
        for _ in range(3):
            await log.renew("run_a")
        server.restore(tmp_path / "copy")
        assert (await sure(lambda: log.run("run_a"))).epoch == "a-5"


async def test_a_run_that_is_gone_altogether_is_not_found(server, tmp_path: Path):
    async with opened(server.url) as log:
        server.copy(tmp_path / "copy")
        await created(log)
        server.restore(tmp_path / "copy")
        assert await sure(lambda: log.run("run_a")) is None
        assert (await created(log)).epoch == "a-1"


async def test_after_a_restart_of_redis_nobodys_runs_wait_for_a_lease(server):
    """Every living replica is to look for what it has shown, before anybody appends."""
    async with opened(server.url) as dead, opened(server.url) as other, opened(server.url, lease=0.2) as hasty:
        await created(dead)
        await die(dead)
        with server.client() as client:
            client.zadd("reattach:replicas", {dead.replica: 1})  # its lease has ended long ago
        server.restart()
        assert await sure(other.orphans) == ()
        async with asyncio.timeout(PATIENCE):
            while not (found := await hasty.orphans()):  # noqa: ASYNC110 (Redis tells nobody how old it is)
                await asyncio.sleep(0.05)
        assert [run.id for run in found] == ["run_a"]


@pytest.mark.parametrize(
    ("settings", "declared"),
    [
        ({}, "power"),
        ({"appendfsync": "everysec"}, "process"),
        ({"appendonly": "no"}, "memory"),
        ({"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}, "memory"),
        ({"maxmemory": "100mb", "maxmemory-policy": "noeviction"}, "power"),
        ({"rename-command": "CONFIG hidden"}, "memory"),
    ],
)
async def test_durability_is_declared_as_redis_is_set(settings, declared, caplog):
    """RS-84, RS-93: and what is missing for more is said."""
    server = RedisServer(**settings)
    try:
        async with opened(server.url) as log:
            assert log.durability == declared
        assert bool(caplog.records) == (declared != "power")
    finally:
        server.remove()


async def test_with_a_replica_of_redis_no_power_cut_is_promised(server):
    """A failover to it may lose what was answered."""
    follower = RedisServer(replicaof=f"127.0.0.1 {server.port}")
    try:
        with server.client() as client:
            assert client.wait(1, int(PATIENCE * 1000)) == 1
        async with opened(server.url) as log:
            assert log.durability == "process"
    finally:
        follower.remove()


async def test_the_password_is_never_shown():
    server = RedisServer(requirepass="geheim")
    try:
        url = f"redis://:geheim@127.0.0.1:{server.port}/0"
        async with opened(url) as log:
            assert log.name == f"redis://127.0.0.1:{server.port}/0"
        for wrong in (f"redis://:falsch@127.0.0.1:{server.port}/0", "redis://:falsch@127.0.0.1:1/0"):
            with pytest.raises(LogUnavailable) as refused:
                await RedisLog(wrong).open()
            assert "falsch" not in str(refused.value)
    finally:
        server.remove()
