"""The seam between replay and live, on every log and face: something happens exactly between two steps (hooks.py).

Whatever it is, a reader is given each event once, in order, with the bytes of the log that it attached to; and where it cannot
go on it is told so, never continued past a hole. B51, B53; RS-18, RS-19, RS-20, RS-21, RS-35, RS-90.
"""

import asyncio
import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from mockserver_moments import AT_THE_READER, BEHIND, READERS, Once, by_sse
from mockserver_stage import OPEN, PATIENCE, Site
from reattach_mockserver.hooks import Hooks
from reattach_mockserver.logs.base import RunSettled, WriterLost
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

ACTIONS = ("publish", "settle", "trim", "rotate", "lose")
QUICK_ON_DISK = {("joined", "publish"), ("read_nothing", "settle"), ("replayed", "publish"), ("read", "lose")}
AT_A_READER = [
    pytest.param(
        log,
        face,
        moment,
        action,
        marks=[] if log == "memory" or (log == "sqlite" and (moment, action) in QUICK_ON_DISK) else [pytest.mark.slow],
    )
    for log in ("memory", "sqlite", "redis")
    for face, moments in AT_THE_READER.items()
    for moment in moments
    for action in ACTIONS
]


@dataclass
class Stage:
    """A run of three events that stays open, and what may happen to it."""

    site: Site
    id: str
    old: list[bytes]

    async def do(self, action: str) -> None:
        engine = self.site.engine
        if action in ("rotate", "lose"):
            self.old = await self.log()
        match action:
            case "publish":
                await self.site.append(self.id, "between-1", "between-2")
            case "settle":
                await engine.cancel(await engine.log.run(self.id))
                await self.site.until_settled(self.id)
            case "trim":
                await engine.expire(self.id, (await engine.log.run(self.id)).last_sequence + 1)
            case "rotate":
                await engine.new_epoch(self.id)
            case "lose":  # the tail, and another one is written under the same numbers
                await engine.new_epoch(self.id, 2)
                await self.site.append(self.id, "another-3", "another-4")

    async def epoch(self) -> str:
        return (await self.site.engine.log.run(self.id)).epoch

    def set_hook(self, moment: str, once: Once | None) -> None:
        """Set one of the moments from now on."""
        if once is not None:
            once.stage = self
        object.__setattr__(self.site.engine.settings.hooks, moment, once)  # frozen for all but a test

    async def log(self) -> list[bytes]:
        return [event.body for event in await self.site.engine.log.read(self.id, 0, 10_000, 1 << 24)]

    async def finish(self) -> None:
        """Let the run have one event more, if it has not settled, and settle."""
        if (await self.site.engine.log.run(self.id)).status not in ("cancelled", "completed"):
            await self.site.append(self.id, "after")
            await self.do("settle")


async def staged(sites: Any, log: Any, /, settings: dict[str, Any] | None = None, **moments: Once) -> Stage:
    """Return a stage whose moments act on its run, and on nothing before it stands."""
    site = await sites(OPEN, log=log, hooks=Hooks(**moments), **(settings or {}))
    run = await site.run()
    await site.until_head(run["id"], 3)
    stage = Stage(site, run["id"], [])
    for once in moments.values():
        once.stage = stage
    return stage


async def expect(seen: Any, stage: Stage, action: str, given: int) -> None:
    """Hold what a reader saw against what may be seen; `given`: how many events it had when that happened."""
    log, run = await stage.log(), await stage.site.engine.log.run(stage.id)
    assert seen.sequences == list(range(1, len(seen.sequences) + 1)), "once, in order, without a hole"
    match action:
        case "trim" if given < run.first_sequence - 1:
            assert (seen.bodies, seen.end) == (log[:given], "cursor_expired")
        case "publish" | "settle" | "trim":
            assert (seen.bodies, seen.end) == (log, "settled")
        case _:
            assert seen.bodies == stage.old[: len(seen.bodies)], "never an event of the other log"
            assert seen.end == "epoch_changed"


@pytest.mark.parametrize(("a_log", "face", "moment", "action"), AT_A_READER, indirect=["a_log"])
async def test_what_happens_between_two_steps_of_a_reader_is_given_once_or_told(sites, a_log, face, moment, action):
    """B51: it happens once, at the first such moment on the reader's way; then the run goes on and settles."""
    once = Once(lambda stage: stage.do(action), since=3 if moment == "read_nothing" else 0)
    waits = Once()
    moments = {"replayed": waits, "read" if moment == "read_nothing" else moment: once}
    stage = await staged(sites, a_log, **moments)
    reading = asyncio.create_task(READERS[face](stage.site, stage.id))
    if moment == "roused":
        await waits.happened()
        await stage.site.append(stage.id, "nudge")
    await once.happened()
    await stage.finish()
    await expect(await asyncio.wait_for(reading, PATIENCE), stage, action, 0 if moment in BEHIND[face] else 3)


AT_A_WRITER = ("appending", "durable", "woken")
LATER = {"settle": RunSettled, "rotate": WriterLost, "lose": WriterLost}
"""How an append fails before which that has happened."""


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("moment", AT_A_WRITER)
@pytest.mark.parametrize("face", READERS)
async def test_what_happens_between_two_steps_of_a_writer_is_given_once_or_told(sites, face, moment, action):
    """B51: a reader is live; the append is refused where the run is another's by then, and never given half."""
    waits, once = Once(), Once(lambda stage: stage.do(action))
    stage = await staged(sites, MemoryLog(), replayed=waits)
    reading = asyncio.create_task(READERS[face](stage.site, stage.id))
    await waits.happened()
    stage.set_hook(moment, once)
    if moment == "appending" and action in LATER:
        with pytest.raises(LATER[action]):
            await stage.site.append(stage.id, "live")
    else:
        await stage.site.append(stage.id, "live")
    await once.happened()
    await stage.finish()
    seen = await asyncio.wait_for(reading, PATIENCE)
    await expect(seen, stage, action, 3 + (moment != "appending" and len(seen.bodies) > 3))


@pytest.mark.parametrize("moment", AT_A_WRITER)
@pytest.mark.parametrize("face", READERS)
async def test_a_reader_that_joins_between_two_steps_of_a_writer_misses_nothing(sites, a_log, face, moment):
    """RS-18, RS-20: it reads the log to its end exactly there, and is told of everything after."""
    reading = []
    waits = Once()

    async def join(stage: Stage) -> None:
        reading.append(asyncio.create_task(READERS[face](stage.site, stage.id)))
        await waits.happened()

    stage = await staged(sites, a_log, **{"replayed": waits, moment: Once(join)})
    await stage.site.append(stage.id, "n1", "n2")
    await stage.finish()
    await expect(await asyncio.wait_for(reading[0], PATIENCE), stage, "publish", 0)


@pytest.mark.parametrize("face", READERS)
async def test_wake_ups_in_another_order_than_the_appends_lose_and_repeat_nothing(sites, a_log, face):
    """RS-21: of two producers the first is held before it tells anybody; the second tells of both."""
    waits = Once()
    others: list[list[bytes]] = []

    async def overtaken(stage: Stage) -> None:
        await stage.site.append(stage.id, "second")
        others.append(await stage.log())

    stage = await staged(sites, a_log, replayed=waits, durable=Once(overtaken, 4))
    reading = asyncio.create_task(READERS[face](stage.site, stage.id))
    await waits.happened()
    await stage.site.append(stage.id, "first")
    assert len(others[0]) == 5, "both were in the log before the first told of itself"
    await stage.finish()
    await expect(await asyncio.wait_for(reading, PATIENCE), stage, "publish", 3)


@pytest.mark.parametrize("face", READERS)
async def test_parallel_producers_and_a_reader_give_one_order(sites, a_log, face):
    """RS-10, RS-11, RS-21: twelve producers at once; live, replay and log are the same bytes in the same order."""
    stage = await staged(sites, a_log)
    reading = asyncio.create_task(READERS[face](stage.site, stage.id))

    async def produce(name: str) -> None:
        for number in range(6):
            await stage.site.append(stage.id, f"{name}-{number}")

    await asyncio.gather(*(produce(f"p{number}") for number in range(12)))
    await stage.finish()
    live = await asyncio.wait_for(reading, PATIENCE)
    replay = await asyncio.wait_for(READERS[face](stage.site, stage.id), PATIENCE)
    assert live.bodies == replay.bodies == await stage.log()
    assert len(live.bodies) == 3 + 72 + 2


async def _append(stage: Stage, name: str) -> None:
    await stage.site.append(stage.id, name)


@pytest.mark.parametrize("moment", ["joined", "read", "sent", "read_nothing", "replayed"])
async def test_dropped_at_the_seam_three_times_and_attached_again_each_event_comes_once(sites, a_log, moment):
    """B53: over several connections; each is lost at that moment, and the next begins after what was taken."""
    name, since = ("read", 3) if moment == "read_nothing" else (moment, 0)
    stage = await staged(sites, a_log)
    taken: list[int] = []
    for drop in range(3):
        once = Once(partial(_append, name=f"at drop {drop}"), since)
        await stage.site.append(stage.id, f"before drop {drop}")
        stage.set_hook(name, once)
        exchange = stage.site.attach(stage.id, f"?after={await stage.epoch()}.{len(taken)}")
        await exchange.block()
        while not once.acted or len(taken) < 2 * drop:
            taken.append((await exchange.block()).json["sequence"])
        await exchange.close()
        stage.set_hook(name, None)
    await stage.finish()
    rest = await by_sse(stage.site, stage.id, f"{await stage.epoch()}.{len(taken)}")
    assert [*taken, *rest.sequences] == list(range(1, len(await stage.log()) + 1))


@pytest.mark.parametrize("action", ["publish", "settle", "trim"])
@pytest.mark.parametrize("moment", ["pinned", "folded"])
async def test_what_happens_while_a_snapshot_is_made_follows_it(sites, a_log, moment, action):
    """RS-27: all events after its cursor are there, also where retention would keep two, and once each."""
    once = Once(lambda stage: stage.do(action))
    stage = await staged(sites, a_log, {"limits": Limits(retention_events=2)}, **{moment: once})
    snapshot = (await stage.site.get(f"/v1/runs/{stage.id}/snapshot")).json
    for number in range(5):
        if action != "settle":
            await stage.site.append(stage.id, f"n{number}")
    await stage.finish()
    seen = await by_sse(stage.site, stage.id, snapshot["cursor"])
    assert seen.end == "settled"
    log = await stage.log()
    assert seen.bodies == log[snapshot["sequence"] :]
    assert snapshot["cursor_id"] == json.loads(log[snapshot["sequence"] - 1])["id"]


@pytest.mark.parametrize("action", ["rotate", "lose"])
@pytest.mark.parametrize("moment", ["pinned", "folded"])
async def test_a_snapshot_is_of_one_log_whatever_happens_to_it(sites, a_log, moment, action):
    """RS-27, RS-35: its cursor is good and of the log that was folded, or is refused as another epoch's."""
    once = Once(lambda stage: stage.do(action))
    stage = await staged(sites, a_log, {"limits": Limits(retention_events=2)}, **{moment: once})
    snapshot = (await stage.site.get(f"/v1/runs/{stage.id}/snapshot")).json
    log = await stage.log() if moment == "pinned" else stage.old
    assert snapshot["cursor_id"] == json.loads(log[snapshot["sequence"] - 1])["id"]
    await stage.finish()
    seen = await by_sse(stage.site, stage.id, snapshot["cursor"])
    assert seen.end == ("settled" if moment == "pinned" else "epoch_changed")
    assert seen.bodies == ((await stage.log())[snapshot["sequence"] :] if moment == "pinned" else [])


async def test_what_reads_between_the_create_and_its_playing_finds_the_run(sites, a_log):
    """The create's event is there, durable, before anything plays it; a cancel there settles it in time."""
    seen = []

    async def between(run_id: str, sequence: int) -> None:
        run = await site.engine.run(run_id)
        await site.engine.cancel(run)
        seen.append((sequence, run.status, len(await site.engine.log.read(run_id, 0, 10, 1 << 20))))

    site = await sites(OPEN, log=a_log, hooks=Hooks(created=between))
    run = await site.run()
    assert seen == [(1, "queued", 1)]
    assert (await site.until_settled(run["id"]))["status"] == "cancelled"


def test_hooks_that_are_not_set_are_none():
    """A moment that nobody looks at costs a comparison, no call and no turn of the loop."""
    assert {getattr(Hooks(), name) for name in Hooks.__slots__} == {None}
