"""The seam of plug-in work (`engine/work.py`): what the engine promises to a work, and holds it to."""

import asyncio
import json

import pytest

from mockserver_stage import OPEN, Site
from reattach_mockserver.app import create_app
from reattach_mockserver.engine import worker
from reattach_mockserver.engine.players import UnknownScript
from reattach_mockserver.engine.work import Completed, Desk, Failed, Note, Outcome, Paused, RunCancelled
from reattach_mockserver.event import Operation
from reattach_mockserver.library import Library
from reattach_mockserver.logs.base import Effect
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.settings import Limits, Settings

pytestmark = pytest.mark.anyio

ASK = {"input": {"scenario": "work", "text": "hi"}}


async def events_of(site: Site, run: dict) -> list[dict]:
    return (await site.get(f"/v1/runs/{run['id']}/events?limit=1000")).json["events"]


async def types_of(site: Site, run: dict) -> list[str]:
    return [event["type"] for event in await events_of(site, run)]


async def test_a_work_plays_the_run_that_names_it(sites):
    """RS-40: it gets the run's input, what it publishes is the log, what it returns settles it; nobody needs to watch."""

    async def work(desk: Desk) -> Outcome:
        said = {"message_id": "m", "role": "user", "text": desk.input["text"]}
        event = await desk.publish("said", "message.completed", said)
        assert event["id"] == desk.event_id("said")
        return Completed({"seen": event["sequence"]})

    site = await sites(works={"work": work})
    run = await site.settled(ASK)
    assert (run["status"], run["result"]) == ("completed", {"seen": 3})
    assert await types_of(site, run) == ["run.created", "run.started", "message.completed", "run.completed"]


async def test_a_work_taken_over_finds_what_was_published_and_repeats_none_of_it(sites):
    """RS-61: what was said first stays, whatever a second process would say under the same step."""
    lives = []
    dead = asyncio.Event()

    async def work(desk: Desk) -> Outcome:
        lives.append([event["type"] async for event in desk.events()])
        first = await desk.publish("one", "note", {"life": len(lives)})
        both = await desk.publish_all(
            [Note(step=step, type="note", data={"life": len(lives), "step": step}) for step in ("one", "two")]
        )
        assert both[0] == first
        if len(lives) == 1:
            dead.set()
            await asyncio.Event().wait()
        return Completed()

    site = await sites(works={"work": work})
    run = await site.run(ASK)
    await dead.wait()
    before = await events_of(site, run)
    await site.engine.restart()
    run = await site.until_settled(run["id"])
    after = await events_of(site, run)
    assert after[: len(before)] == before
    assert [event["data"] for event in after if event["type"] == "note"] == [{"life": 1}, {"life": 1, "step": "two"}]
    assert lives == [["run.created", "run.started"], ["run.created", "run.started", "note", "note"]]


async def test_a_step_of_an_earlier_epoch_counts_as_published(sites):
    """RS-35: an event has another id in another incarnation, but a step leaves one event; what the tail lost comes again."""
    lives = []

    async def work(desk: Desk) -> Outcome:
        lives.append(desk.run.epoch)
        for step in ("one", "two"):
            await desk.publish(step, "note", {"step": step, "epoch": desk.run.epoch})
        if len(lives) == 1:
            await asyncio.Event().wait()
        return Completed()

    site = await sites(works={"work": work})
    run = await site.run(ASK)
    await site.until_head(run["id"], 4)
    await site.engine.new_epoch(run["id"], keep=3)
    run = await site.until_settled(run["id"])
    notes = [event["data"] for event in await events_of(site, run) if event["type"] == "note"]
    assert notes == [{"step": "one", "epoch": lives[0]}, {"step": "two", "epoch": lives[1]}]


@pytest.mark.parametrize("kind", ["run.completed", "stream.closing", "action.resolved", "release.changed"])
async def test_the_engines_own_events_are_the_engines(sites, kind):
    """RS-48: a work cannot settle its run by publishing; it fails instead, without a word about the inside."""

    async def work(desk: Desk) -> Outcome:
        await desk.publish("end", kind, {})
        return Completed()

    site = await sites(works={"work": work})
    run = await site.settled(ASK)
    assert run["error"] == {"code": "internal", "message": "the work failed; see the server's log"}
    assert await types_of(site, run) == ["run.created", "run.started", "run.failed"]


async def test_an_event_above_the_limit_fails_the_run(sites):
    async def work(desk: Desk) -> Outcome:
        await desk.publish("small", "note", {})
        await desk.publish("large", "note", {"text": "x" * 500})
        return Completed()

    site = await sites(works={"work": work}, limits=Limits(event_bytes=400))
    run = await site.settled(ASK)
    assert (run["status"], run["error"]["code"]) == ("failed", "event_too_large")
    assert await types_of(site, run) == ["run.created", "run.started", "note", "run.failed"]


async def test_a_result_above_the_limit_fails_the_run(sites):
    async def work(desk: Desk) -> Outcome:
        return Completed("x" * 500)

    site = await sites(works={"work": work}, limits=Limits(event_bytes=400))
    assert (await site.settled(ASK))["error"]["code"] == "event_too_large"


async def test_a_failure_carries_its_data(sites):
    """RS-58: code, message and data, in the event and in the run."""

    async def work(desk: Desk) -> Outcome:
        return Failed("no_luck", "it did not work", {"tried": 3})

    site = await sites(works={"work": work})
    run = await site.settled(ASK)
    assert run["error"] == {"code": "no_luck", "message": "it did not work", "data": {"tried": 3}}
    assert (await events_of(site, run))[-1]["data"] == {"error": run["error"]}


async def call(
    desk: Desk, name: str, *, result: bool = False, reversible: bool = False, external: bool = False
) -> None:
    told = Operation(id=name, tool="t", reversible=reversible, external=external)
    data = {"call_id": name, "operation_id": name, "tool": "t", "arguments": {}}
    await desk.publish(f"{name}.call", "tool.call", data, operation=told)
    if result:
        await desk.publish(f"{name}.result", "tool.result", {"call_id": name, "operation_id": name, "result": 1})


async def test_a_work_that_rests_notices_a_cancel(sites):
    """RS-53: at its next rest; the inventory comes from what it published."""

    async def work(desk: Desk) -> Outcome:
        await call(desk, "done", result=True)
        await call(desk, "undone", result=True, reversible=True)
        await call(desk, "open", external=True)
        await desk.resting(3_600)
        return Completed()

    site = await sites(works={"work": work})
    run = await site.run(ASK)
    await site.until_head(run["id"], 7)
    assert (await site.call("POST", f"/v1/runs/{run['id']}/cancel")).status == 202
    run = await site.until_settled(run["id"])
    assert run["status"] == "cancelled"
    assert (await events_of(site, run))[-1]["data"] == {
        "reason": "requested",
        "operations": {"known": ["undone"], "unknown": ["open"], "irreversible": ["done"], "external": ["open"]},
    }


async def test_a_work_that_does_not_notice_a_cancel_is_ended(sites, monkeypatch):
    """RS-53: it would hang for ever; the run settles in bounded time all the same."""
    monkeypatch.setattr(worker, "_GRACE", 0.05)
    ended = asyncio.Event()

    async def work(desk: Desk) -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return Completed()

    site = await sites(works={"work": work})
    run = await site.run(ASK)
    await site.until_head(run["id"], 2)
    await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    assert (await site.until_settled(run["id"]))["status"] == "cancelled"
    assert ended.is_set()


async def test_a_time_limit_of_the_works_own_is_no_cancel(sites):
    async def work(desk: Desk) -> Outcome:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
        return Completed()

    site = await sites(works={"work": work})
    assert (await site.settled(ASK))["error"]["code"] == "internal"


async def test_what_a_work_became_first_stands(sites):
    """RS-54: cancelled while it came to its end, it is completed on every face."""

    async def work(desk: Desk) -> Outcome:
        await desk.cancelled.wait()
        return Completed("first")

    site = await sites(works={"work": work})
    run = await site.run(ASK)
    await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    run = await site.until_settled(run["id"])
    assert (run["status"], run["result"]) == ("completed", "first")
    assert (await types_of(site, run))[-1] == "run.completed"


async def test_a_run_that_was_to_be_cancelled_is_not_worked_on_again(sites):
    """RS-53: the cancel was recorded, the process died before it was carried out; an effect that stands is known."""
    lives = []

    async def work(desk: Desk) -> Outcome:
        lives.append(desk.run.id)
        await call(desk, "op", reversible=True)
        claim = await desk.claim("op")
        await desk.perform(Effect(desk.run.id, "op", "t", reversible=True), claim)
        await asyncio.Event().wait()
        return Completed()

    site = await sites(works={"work": work})
    run = await site.run(ASK)
    await site.until_head(run["id"], 3)
    await site.until(lambda: bool(site.engine.log._effects))
    await site.engine.log.ask_cancel(run["id"], "requested")
    await site.engine.restart()
    run = await site.until_settled(run["id"])
    assert (run["status"], len(lives)) == ("cancelled", 1)
    assert (await events_of(site, run))[-1]["data"]["operations"]["known"] == ["op"]


async def test_a_pause_of_a_work_is_answered_like_any_other(sites):
    """RS-55, RS-56, RS-89: its action names its source; the continuation is the same work, told of the answer."""

    async def work(desk: Desk) -> Outcome:
        if desk.run.continues is not None:
            assert [run.id for run in await desk.earlier()] == [desk.run.continues]
            assert desk.input is None
            (answer,) = [e["data"] async for e in desk.events() if e["type"] == "action.resolved"]
            return Completed(answer["response"])
        note = desk.required("ask", "approval", id="a", tool="pay", arguments={"cents": 9}, operation_id="op")
        await desk.publish_all([note])
        return Paused([note.data["action"]])

    site = await sites(works={"work": work})
    paused = await site.settled(ASK)
    asked = next(event for event in await events_of(site, paused) if event["type"] == "action.required")
    assert (paused["status"], paused["required_actions"]) == ("requires_action", [asked["data"]["action"]])
    assert asked["data"]["action"]["source_event_id"] == asked["id"]
    response = {"action_id": "a", "decision": "approve"}
    after = await site.settled({"continues": paused["id"], "responses": [response]})
    assert (after["status"], after["result"]) == ("completed", response)
    again = await site.create({"continues": paused["id"], "responses": [{"action_id": "a", "decision": "reject"}]})
    assert again.code == "action_resolved"


async def test_a_pause_of_a_work_expires(sites):
    now = [1_000_000_000_000]

    async def work(desk: Desk) -> Outcome:
        notes = [
            desk.required(name, "approval", id=name, tool="pay", arguments={}, operation_id=name, expires_in_ms=ms)
            for name, ms in (("a", 5_000), ("b", None))
        ]
        await desk.publish_all(notes)
        return Paused([note.data["action"] for note in notes])

    site = await sites(works={"work": work}, now=lambda: now[0])
    paused = await site.settled(ASK)
    assert paused["required_actions"][0]["expires_at"] == "2001-09-09T01:46:45.000Z"
    now[0] += 5_000
    responses = [{"action_id": name, "decision": "approve"} for name in "ab"]
    assert (await site.create({"continues": paused["id"], "responses": responses})).code == "action_expired"


class Released:
    """A work of some release, which would do only what is named `pay`."""

    def __init__(self, release: str) -> None:
        self.release = release
        self.tool = "pay"

    def asks(self, action) -> bool:
        return action["tool"] == self.tool

    async def __call__(self, desk: Desk) -> Outcome:
        if desk.run.continues is not None:
            return Completed(desk.run.release)
        note = desk.required("ask", "approval", id="a", tool="pay", arguments={}, operation_id="op")
        await desk.publish_all([note])
        return Paused([note.data["action"]])


@pytest.mark.parametrize("changed", [{"release": "r2"}, {"tool": "refund"}])
async def test_an_approval_for_what_would_not_be_done_is_stale(sites, changed):
    """RS-89: another release has taken over, or the same one would do something else."""
    work = Released("r1")
    site = await sites(works={"work": work})
    paused = await site.settled(ASK)
    assert paused["release"] == "r1"
    vars(work).update(changed)
    body = {"continues": paused["id"], "responses": [{"action_id": "a", "decision": "approve"}]}
    assert (await site.create(body)).code == "approval_stale"
    vars(work).update(release="r1", tool="pay")
    assert (await site.settled(body))["result"] == "r1"


async def test_a_work_of_another_release_says_so(sites):
    """The event comes once a change, before anything that the new release does; also where it takes a run over."""

    class Slow(Released):
        async def __call__(self, desk: Desk) -> Outcome:
            await desk.publish(self.release, "note", {})
            if self.release != "r2" or len(self.lives) < 2:
                self.lives.append(self.release)
                await asyncio.Event().wait()
            return Completed(desk.run.release)

    work = Slow("r1")
    work.lives = []
    site = await sites(works={"work": work})
    run = await site.run(ASK)
    await site.until_head(run["id"], 4)
    work.release = "r2"
    await site.engine.restart()
    await site.until_head(run["id"], 6)
    await site.engine.restart()
    run = await site.until_settled(run["id"])
    assert run["result"] == "r2"
    assert await types_of(site, run) == [
        "run.created", "run.started", "release.changed", "note", "release.changed", "note", "run.completed",
    ]  # fmt: skip


async def test_two_engines_on_one_log_never_work_on_one_run(sites):
    """RS-38, RS-46: the one that slept finds its run taken: it publishes nothing, claims nothing, and its effect is refused."""
    log, lives, slept, taken = MemoryLog(), [], asyncio.Event(), asyncio.Event()
    late: list[str] = []

    async def work(desk: Desk) -> Outcome:
        lives.append(desk)
        await call(desk, "op")
        claim = await desk.claim("op")
        if len(lives) == 1:
            slept.set()
            await taken.wait()
            for ask in (
                desk.perform(Effect(desk.run.id, "op", "t", reversible=False, result='"late"'), claim),
                desk.claim("op"),
                desk.publish("late", "note", {}),
            ):
                try:
                    await ask
                except Exception as error:
                    late.append(type(error).__name__)
            return Completed("late")
        await desk.perform(Effect(desk.run.id, "op", "t", reversible=False, result='"now"'), claim)
        taken.set()
        return Completed("now")

    first = await sites(works={"work": work}, log=log)
    second = Site(create_app(Settings(scripts=Library({"work": work}), default="work", log=log)), "")
    run = await first.run(ASK)
    await slept.wait()
    await second.engine.start()
    run = await second.until_settled(run["id"])
    await first.until(lambda: not first.engine.players.playing())
    assert run["result"] == "now"
    assert late[0] == "ClaimLost"
    assert set(late[1:]) <= {"WriterLost", "RunSettled"}
    assert [effect.result for effect in await log.effects(run["id"])] == ['"now"']
    assert (await types_of(first, run)) == ["run.created", "run.started", "tool.call", "run.completed"]
    await second.close()


async def test_an_input_is_kept_for_who_is_asked_with_it(sites):
    """A script asks for nothing more than its name, so its runs keep none."""

    async def work(desk: Desk) -> Outcome:
        return Completed()

    site = await sites(OPEN, works={"work": work})
    run, other = await site.settled(ASK), await site.run({"input": {"scenario": "open", "text": "hi"}})
    assert json.loads((await site.engine.log.run(run["id"])).input) == ASK["input"]
    assert (await site.engine.log.run(other["id"])).input is None


async def test_an_engine_without_the_work_of_an_unfinished_run_does_not_start(sites):
    log = MemoryLog()

    async def work(desk: Desk) -> Outcome:
        await asyncio.Event().wait()
        return Completed()

    site = await sites(works={"work": work}, log=log)
    await site.run(ASK)
    await site.engine.stop()
    other = create_app(Settings(scripts=Library(), default="hello", log=log))
    with pytest.raises(UnknownScript):
        await other.engine.start()


async def test_a_work_that_gives_up_by_itself_is_cancelled(sites):
    async def work(desk: Desk) -> Outcome:
        raise RunCancelled

    site = await sites(works={"work": work})
    run = await site.settled(ASK)
    assert (await events_of(site, run))[-1]["data"]["reason"] == "work"


async def test_a_work_that_voids_its_own_claim_fails(sites):
    """RS-62: the run is its own still, so nobody else would bring it to an end."""

    async def work(desk: Desk) -> Outcome:
        first, _ = await desk.claim("op"), await desk.claim("op")
        await desk.perform(Effect(desk.run.id, "op", "t", reversible=False), first)
        return Completed()

    site = await sites(works={"work": work})
    assert (await site.settled(ASK))["error"]["code"] == "internal"
