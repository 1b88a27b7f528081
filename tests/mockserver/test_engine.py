"""A run's life: played once whatever dies, by every step that a script has."""

import asyncio
import json

import pytest

from mockserver_stage import OPEN, QUICK
from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.engine.players import UnknownScript
from reattach_mockserver.logs.base import LogUnavailable
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.recording import load_recording
from reattach_mockserver.scenarios.script import (
    Action,
    Ask,
    Blob,
    CloseStreams,
    End,
    ExpireTo,
    Kill,
    NewEpoch,
    Overload,
    Parallel,
    Problem,
    RawEvent,
    Release,
    Restart,
    Say,
    Script,
    Status,
    Tool,
    Wait,
)
from reattach_mockserver.settings import Limits, Settings

pytestmark = pytest.mark.anyio

FULL = Script(
    name="full",
    clock="virtual",
    seed=3,
    steps=(
        Say(text="Looking 🙂 at it"),
        Tool(tool="charge", operation_id="op_91", takes_ms=300, result={"ok": True}),
        Tool(tool="mail", error=Problem(code="bounced", message="no such box")),
        Parallel(branches=((Say(text="A b"), Wait(ms=5), Tool(tool="x", result=1)), (Tool(tool="y", result=2),))),
        Status(text="checking"),
        RawEvent(type="vendor.note", data={"any": "json"}, text="seen"),
        Blob(bytes=1_000),
        Tool(tool="last", result=None),
        End(result={"refunded": True}),
    ),
)


class Dying(MemoryLog):
    """Lets a process die at its n-th write: what was written stays, the answer is never given."""

    def __init__(self, dies_at: int, *, before: bool) -> None:
        super().__init__()
        self.left = dies_at
        self.before = before
        self.died = asyncio.Event()

    async def _maybe(self, write):
        self.left -= 1
        if self.left == 0 and self.before:
            return await self._die(write)
        result = await write
        if self.left == 0:
            return await self._die(None)
        return result

    async def _die(self, write):
        if write is not None:
            write.close()
        self.died.set()
        await asyncio.get_running_loop().create_future()

    async def append(self, *args, **kwargs):
        return await self._maybe(super().append(*args, **kwargs))

    async def mark(self, *args):
        return await self._maybe(super().mark(*args))

    async def perform(self, *args):
        return await self._maybe(super().perform(*args))


async def bodies(site, run):
    return [json.loads(event.body) for event in await site.engine.log.read(run["id"], 0, 10_000, 1 << 26)]


@pytest.mark.parametrize("before", [True, False])
async def test_killed_at_any_write_a_run_goes_on_without_loss_or_repeat(sites, before):
    """RS-45, RS-61, RS-62: at each write, before it and after it: same events, each effect once."""
    whole = await sites(FULL, deterministic=True)
    expected = await bodies(whole, await whole.settled())
    for at in range(1, 100):
        log = Dying(at, before=before)
        site = await sites(FULL, log=log, deterministic=True)
        run = await site.run()
        dying = asyncio.create_task(log.died.wait())
        done = asyncio.create_task(site.until_settled(run["id"]))
        await asyncio.wait([dying, done], return_when=asyncio.FIRST_COMPLETED)
        if not log.died.is_set():
            dying.cancel()
            break
        shown = await bodies(site, run)
        await site.engine.restart()
        await done
        assert (await bodies(site, run))[: len(shown)] == shown, at
        assert await bodies(site, run) == expected, at
        assert [effect.tool for effect in await log.effects(run["id"])] == ["charge", "y", "x", "last"], at
    assert at > 8, "the run has enough writes to be worth it"


async def test_an_effect_done_and_not_recorded_is_not_done_again(sites):
    """Killed between effect and result: the ledger counts two attempts and one effect."""
    log = Dying(2, before=False)
    site = await sites(Script(name="s", clock="virtual", steps=(Tool(tool="charge", result={}),)), log=log)
    run = await site.run()
    await asyncio.wait_for(log.died.wait(), 5)
    await site.engine.restart()
    await site.until_settled(run["id"])
    counts = await log.counts()
    assert (counts.effects, counts.effect_attempts) == (1, 2)


async def test_an_append_whose_answer_is_lost_is_sent_again(sites):
    """RS-85: indefinite errors of the storage, before and after the write: the log is as if nothing had been."""

    class Flaky(MemoryLog):
        calls = 0

        async def append(self, *args, **kwargs):
            self.calls += 1
            if self.calls % 3 == 1:
                raise LogUnavailable("before")
            result = await super().append(*args, **kwargs)
            if self.calls % 3 == 2:
                raise LogUnavailable("after")
            return result

    whole = await sites(FULL, deterministic=True)
    site = await sites(FULL, log=Flaky(), deterministic=True)
    expected = await bodies(whole, await whole.settled())
    assert await bodies(site, await site.settled()) == expected


async def test_a_run_goes_on_in_another_process(sites, tmp_path):
    """An engine that opens a SQLite log plays what is unfinished in it, from where it is."""
    script = Script(name="s", steps=(Say(text="a b c"), Wait(ms=60), Say(text="d e f")))
    first = await sites(script, log=SqliteLog(tmp_path / "log.db"))
    run = await first.run()
    await first.until_head(run["id"], 4)
    await first.close()
    second = await sites(script, log=SqliteLog(tmp_path / "log.db"))
    settled = await second.until_settled(run["id"])
    assert (settled["status"], settled["epoch"]) == ("completed", run["epoch"])
    events = await bodies(second, run)
    assert [event["sequence"] for event in events] == list(range(1, 12))
    assert len({event["id"] for event in events}) == 11


async def test_an_unfinished_run_of_an_unknown_script_stops_the_start(sites):
    """It is not failed behind its owner's back: the operator is told what to give."""
    log = MemoryLog()
    first = await sites(OPEN, log=log)
    run = await first.run()
    await first.close()
    with pytest.raises(UnknownScript, match="open"):
        await sites(QUICK, log=log)
    assert (await log.run(run["id"])).status in ("queued", "running")


async def test_a_start_that_fails_lets_go_of_the_log_and_the_next_one_goes_on(sites):
    """RS-62: half started it would hold its runs for good, with nobody to play them."""

    class Sick(MemoryLog):
        opens = takes = 0

        async def open(self):
            self.opens += 1

        async def close(self):
            self.opens -= 1

        async def take_over(self, *args):
            self.takes += 1
            if self.takes == 2:
                raise LogUnavailable("away")
            return await super().take_over(*args)

    log = Sick()
    first = await sites(OPEN, log=log)
    runs = [await first.run() for _ in range(2)]
    await first.close()
    second = Engine(Settings(scripts={"open": OPEN}, default="open", log=log))
    with pytest.raises(LogUnavailable):
        await second.start()
    assert (log.opens, second.players.playing()) == (0, set())
    await second.start()
    assert (log.opens, second.players.playing()) == (1, {run["id"] for run in runs})
    await second.stop()


async def test_every_step_leaves_its_event(sites):
    site = await sites(FULL)
    run = await site.settled()
    events = await bodies(site, run)
    assert [event["type"] for event in events if event["type"] not in ("message.delta", "message.completed")] == [
        "run.created", "run.started", "tool.call", "tool.result", "tool.call", "tool.result", "tool.call", "tool.result",
        "tool.call", "tool.result", "status", "vendor.note", "blob", "tool.call", "tool.result", "run.completed",
    ]  # fmt: skip
    assert run["result"] == {"refunded": True}
    note = next(event for event in events if event["type"] == "vendor.note")
    assert (note["text"], note["data"]) == ("seen", {"any": "json"})
    assert "text" not in next(event for event in events if event["type"] == "status")


async def test_indexes_count_from_0_and_deltas_make_the_message(sites):
    """RS-25: the deltas put together are the message that completes them."""
    site = await sites(FULL)
    events = await bodies(site, await site.settled())
    messages = {}
    for event in events:
        data = event["data"]
        if event["type"] == "message.delta":
            assert data["index"] == len(messages.setdefault(data["message_id"], []))
            messages[data["message_id"]].append(data["text"])
        elif event["type"] == "message.completed":
            assert "".join(messages[data["message_id"]]) == data["text"]
    assert len(messages) == 2


async def test_operation_ids_are_stable_and_named_in_call_and_result(sites):
    """RS-47: made before the first attempt; those that the script names are kept."""
    site = await sites(FULL)
    run = await site.settled()
    calls = {
        e["data"]["call_id"]: e["data"]["operation_id"] for e in await bodies(site, run) if e["type"] == "tool.call"
    }
    results = {
        e["data"]["call_id"]: e["data"]["operation_id"] for e in await bodies(site, run) if e["type"] == "tool.result"
    }
    assert calls == results
    assert "op_91" in calls.values()
    assert len(set(calls.values())) == 5


async def test_producers_in_parallel_share_one_order(sites):
    """RS-21: inside a branch the order stands; between branches the seed decides."""
    branches = tuple(tuple(RawEvent(type="note", data={"b": b, "n": n}) for n in range(20)) for b in range(4))
    orders = set()
    for seed in (1, 1, 2):
        site = await sites(Script(name="s", clock="virtual", seed=seed, steps=(Parallel(branches=branches),)))
        notes = [e["data"] for e in await bodies(site, await site.settled()) if e["type"] == "note"]
        for b in range(4):
            assert [note["n"] for note in notes if note["b"] == b] == list(range(20))
        orders.add(tuple(note["b"] for note in notes))
    assert len(orders) == 2, "one order a seed"


async def test_the_virtual_clock_takes_no_time_and_shows_it(sites):
    site = await sites(Script(name="s", clock="virtual", steps=(Wait(ms=3_600_000), Status(text="later"))))
    async with asyncio.timeout(5):
        run = await site.settled()
    assert run["ended_at"][:13] != run["created_at"][:13]


async def test_an_event_that_is_too_large_is_the_runs_failure(sites):
    """Section 8: itself an event, never silence."""
    site = await sites(
        Script(name="s", clock="virtual", steps=(Status(text="before"), Blob(bytes=5_000), Status(text="after"))),
        limits=Limits(event_bytes=4_000),
    )
    run = await site.settled()
    assert (run["status"], run["error"]["code"]) == ("failed", "event_too_large")
    assert [event["type"] for event in await bodies(site, run)][-2:] == ["status", "run.failed"]


async def test_a_result_that_is_too_large_is_the_runs_failure_too(sites):
    site = await sites(
        Script(name="s", clock="virtual", steps=(End(result="x" * 5_000),)), limits=Limits(event_bytes=4_000)
    )
    assert (await site.settled())["error"]["code"] == "event_too_large"


async def test_a_script_cannot_fake_a_settling_event(sites):
    site = await sites(Script(name="s", clock="virtual", steps=(RawEvent(type="run.completed"), Status(text="x"))))
    run = await site.settled()
    assert (run["status"], run["error"]["code"]) == ("failed", "reserved_type")


async def test_a_fault_inside_the_engine_is_the_runs_failure(sites, caplog):
    """A run that nobody plays would stand as running for ever."""

    class Broken(MemoryLog):
        async def perform(self, effect):
            raise RuntimeError("broken ledger")

    site = await sites(Script(name="s", clock="virtual", steps=(Tool(tool="t"),)), log=Broken())
    run = await site.settled()
    assert (run["status"], run["error"]["code"]) == ("failed", "internal")
    assert "broken ledger" in caplog.text


async def test_a_release_is_an_event_and_a_member_of_the_run(sites):
    site = await sites(Script(name="s", clock="virtual", steps=(Release(release="r2"),)))
    run = await site.settled()
    assert run["release"] == "r2"
    assert [e["data"] for e in await bodies(site, run) if e["type"] == "release.changed"] == [{"release": "r2"}]


@pytest.mark.parametrize("step", [Restart(), Kill()])
async def test_a_restart_step_is_played_once(sites, step):
    """A mounted server does not kill its host: it restarts its engine instead. The run goes on after the step."""
    site = await sites(Script(name="s", clock="virtual", steps=(Status(text="a"), step, Status(text="b"))))
    run = await site.settled()
    assert [e["data"] for e in await bodies(site, run) if e["type"] == "status"] == [{"text": "a"}, {"text": "b"}]
    assert run["epoch"].endswith("-1"), "no event was lost: the epoch stands"


async def test_calls_during_a_restart_are_answered_or_told_to_come_again(sites, tmp_path):
    """No 500, no answer from a log that is half closed; afterwards all is as before."""
    site = await sites(OPEN, log=SqliteLog(tmp_path / "log.db"))
    run = await site.run()
    await site.until_head(run["id"], 3)
    for _ in range(5):
        restarting = asyncio.create_task(site.engine.restart())
        answers = []
        while not restarting.done():
            answers.append(await site.get(f"/v1/runs/{run['id']}"))
            answers.append(await site.create({"input": "x"}))
            await asyncio.sleep(0)
        await restarting
        assert {answer.status for answer in answers} <= {200, 201, 503}
    assert (await site.get(f"/v1/runs/{run['id']}")).json["last_sequence"] == 3


async def test_a_kill_step_kills_where_that_was_allowed(sites):
    killed = []
    site = await sites(
        Script(name="s", clock="virtual", steps=(Kill(), Status(text="b"))), kill=lambda: killed.append(True)
    )
    await site.settled()
    assert killed == [True]


async def test_a_new_epoch_step_begins_one_and_the_run_goes_on(sites):
    """RS-35: event ids stay unique over both incarnations."""
    site = await sites(Script(name="s", clock="virtual", steps=(Status(text="a"), NewEpoch(), Status(text="b"))))
    run = await site.settled()
    assert run["epoch"].endswith("-2")
    ids = [event["id"] for event in await bodies(site, run)]
    assert len(set(ids)) == len(ids) == 5


async def test_a_run_whose_new_epoch_could_not_be_begun_is_played_on(sites, monkeypatch):
    """Its player was ended for it; whatever the log did, the run does not stand as running for ever."""
    monkeypatch.setattr("reattach_mockserver.engine.replicas._PAUSE", 0.01)

    class Refusing(MemoryLog):
        async def renew(self, *args):
            raise LogUnavailable("away")

    site = await sites(OPEN, log=Refusing())
    run = await site.run()
    with pytest.raises(LogUnavailable):
        await site.engine.new_epoch(run["id"])
    await site.until(lambda: site.engine.players.plays(run["id"]))


async def test_a_lost_tail_is_written_again_under_other_ids(sites):
    """An event's id is unique for ever: what takes the place of a lost event is another event."""
    site = await sites(QUICK)
    run = await site.settled()
    before = await bodies(site, run)
    await site.engine.new_epoch(run["id"], keep=3)
    await site.until_settled(run["id"])
    after = await bodies(site, run)
    assert [event["id"] for event in after[:3]] == [event["id"] for event in before[:3]]
    assert not {event["id"] for event in after[3:]} & {event["id"] for event in before}
    assert [event["data"] for event in after] == [event["data"] for event in before]


async def test_close_streams_closes_those_of_its_run(sites):
    site = await sites(Script(name="s", steps=(Wait(ms=40), CloseStreams(), Wait(ms=3_600_000))))
    run = await site.run()
    blocks = await site.follow(run["id"])
    assert (blocks[-1].name, blocks[-1].json) == ("stream.closing", {"reason": "max_age"})


async def test_overload_refuses_for_a_while(sites):
    clock = [1_000_000]
    script = Script(name="s", steps=(Overload(ms=500, status=429), Wait(ms=3_600_000)))
    site = await sites(script, now=lambda: clock[0])
    await site.run()
    await site.until(lambda: site.engine.overloaded() is not None)
    assert (await site.create()).status == 429
    clock[0] += 500
    assert (await site.create()).status == 201


async def test_expire_to_keeps_from_there_on(sites):
    site = await sites(
        Script(name="s", clock="virtual", steps=(Status(text="a"), Status(text="b"), ExpireTo(sequence=4)))
    )
    run = await site.settled()
    assert (run["first_sequence"], run["last_sequence"]) == (4, 5)


async def test_a_recording_is_played_as_a_run(sites, tmp_path):
    """Each line an event with its data untouched, then one settling event."""
    lines = [{"type": "a.b", "n": 1, "deep": {"x": [1, 2.5, None]}}, {"object": "thing", "text": "…"}, {"n": 3}]
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    recording = load_recording(path)
    site = await sites(QUICK)
    site.engine.settings.scripts._scripts["recorded"] = recording
    run = await site.settled({"input": {"scenario": "recorded"}})
    events = await bodies(site, run)
    assert [event["type"] for event in events[2:]] == ["a.b", "thing", "message", "run.completed"]
    assert [event["data"] for event in events[2:5]] == lines


async def test_a_paused_run_plays_no_further(sites):
    steps = (Ask(actions=(Action(id="a", tool="t"),), approved=(Status(text="x"),)), Status(text="y"))
    site = await sites(Script(name="s", clock="virtual", steps=steps))
    run = await site.settled()
    assert [event["type"] for event in await bodies(site, run)] == [
        "run.created", "run.started", "action.required", "run.paused",
    ]  # fmt: skip
