"""A paused run is answered: by one continuation, once, whoever asks how often."""

import asyncio
import json

import pytest

from mockserver_dialogue import Dialogue
from mockserver_stage import QUICK, quiet
from reattach_mockserver.bearer import parse_tokens
from reattach_mockserver.engine.continuation import next_release
from reattach_mockserver.logs.base import LogUnavailable
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.recording import Ending, RecordedEvent, Recording
from reattach_mockserver.scenarios.script import Action, Ask, End, Release, Say, Script, Status, Tool, Wait
from reattach_mockserver.settings import Limits

pytestmark = pytest.mark.anyio

CALL = {"service": "shop"}
PAUSES = Script(
    name="pauses",
    clock="virtual",
    steps=(
        Say(text="May I?", split="whole"),
        Ask(
            actions=(
                Action(id="act_1", tool="restart", arguments=CALL, thread="operations"),
                Action(id="act_2", kind="client_tool", tool="read_clipboard"),
                Action(id="act_3", kind="authorization", tool="sign_in"),
            ),
            approved=(Tool(tool="restart", arguments=CALL, result={"ok": True}), Status(text="yes")),
            rejected=(Status(text="no"),),
        ),
        End(result={"done": True}),
    ),
)
YES = [
    {"action_id": "act_1", "decision": "approve", "reason": "go on"},
    {"action_id": "act_2", "result": {"text": "🙂", "n": 1}},
    {"action_id": "act_3", "decision": "approve"},
]
NO = [YES[0], YES[1], {"action_id": "act_3", "decision": "reject"}]


def answers(run, responses, **more):
    return {"continues": run["id"], "responses": responses, **more}


async def events(site, run, **headers):
    return (await site.get(f"/v1/runs/{run['id']}/events?limit=1000", headers)).json["events"]


def kinds(found):
    return [event["type"] for event in found]


async def test_a_run_ends_with_all_its_required_actions(sites):
    """RS-55: several kinds at once, each with its source event and its thread, in status, snapshot and replay alike."""
    site = await sites(PAUSES)
    run = await site.settled()
    log = await events(site, run)
    asked = [event for event in log if event["type"] == "action.required"]
    assert [action["id"] for action in run["required_actions"]] == ["act_1", "act_2", "act_3"]
    assert [action["source_event_id"] for action in run["required_actions"]] == [event["id"] for event in asked]
    assert [action["thread"] for action in run["required_actions"]] == ["operations", None, None]
    assert (
        [event["data"]["action"] for event in asked] == run["required_actions"] == log[-1]["data"]["required_actions"]
    )
    assert (await site.get(f"/v1/runs/{run['id']}/snapshot")).json["required_actions"] == run["required_actions"]
    assert all(action["operation_id"] for action in run["required_actions"])


async def test_an_answer_starts_another_run_in_the_session(sites, a_log):
    """The paused run's log stays closed; the new one begins with what was answered, as it was sent."""
    site = await sites(PAUSES, log=a_log)
    run = await site.settled({"input": "x", "session_id": "s"})
    answer = await site.create(answers(run, YES))
    after = answer.json
    assert answer.status == 201
    assert (after["continues"], after["session_id"], after["last_sequence"]) == (run["id"], "s", 4)
    assert (await site.until_settled(after["id"]))["result"] == {"done": True}
    log = await events(site, after)
    assert kinds(log)[:5] == ["run.created", "action.resolved", "action.resolved", "action.resolved", "run.started"]
    assert log[0]["data"] == {"session_id": "s", "continues": run["id"], "metadata": None}
    assert [event["data"] for event in log[1:4]] == [
        {"action_id": response["action_id"], "source_run_id": run["id"], "response": response} for response in YES
    ]
    assert [event["data"]["text"] for event in log if event["type"] == "status"] == ["yes"]
    assert len(await events(site, run)) == run["last_sequence"]


async def test_every_client_sees_who_answered(sites, a_log):
    """`continued_by`, a resolution for each action, another ETag; the snapshot says the same."""
    site = await sites(PAUSES, log=a_log)
    run = await site.settled()
    before = await site.get(f"/v1/runs/{run['id']}")
    after = (await site.create(answers(run, YES))).json
    now = await site.get(f"/v1/runs/{run['id']}", {"If-None-Match": before.headers["etag"]})
    assert (now.status, now.json["status"], now.json["continued_by"]) == (200, "requires_action", after["id"])
    resolutions = [action["resolution"] for action in now.json["required_actions"]]
    assert resolutions == ["approved", "answered", "approved"]
    snapshot = (await site.get(f"/v1/runs/{run['id']}/snapshot")).json
    assert [action["resolution"] for action in snapshot["required_actions"]] == resolutions


async def test_one_rejection_plays_what_was_written_for_it(sites):
    site = await sites(PAUSES)
    run = await site.settled()
    after = await site.settled(answers(run, NO))
    assert [event["data"]["text"] for event in await events(site, after) if event["type"] == "status"] == ["no"]
    paused = (await site.get(f"/v1/runs/{run['id']}")).json
    assert [action["resolution"] for action in paused["required_actions"]] == ["approved", "answered", "rejected"]


async def test_an_approved_call_keeps_its_operation_id(sites):
    """RS-47: what is done under the id is what was asked for under it."""
    site = await sites(PAUSES)
    run = await site.settled()
    after = await site.settled(answers(run, YES))
    call = next(event for event in await events(site, after) if event["type"] == "tool.call")
    assert call["data"]["operation_id"] == run["required_actions"][0]["operation_id"]


@pytest.mark.parametrize("key", ["c1", "c2"])
async def test_equal_answers_are_the_same_continuation_under_whatever_key(sites, a_log, key):
    """RS-56: in another order, with another key, after its end: 200, and the key is that continuation's from then on."""
    site = await sites(PAUSES, log=a_log)
    run = await site.settled()
    first = await site.create(answers(run, YES), key="c1")
    await site.until_settled(first.json["id"])
    shuffled = answers(run, [dict(reversed(response.items())) for response in YES])
    if key == "c2":
        shuffled["responses"].reverse()
        shuffled["input"] = "whatever"
    again = await site.create(shuffled, key=key)
    assert (again.status, again.headers["idempotency-replayed"]) == (200, "true")
    assert again.json["id"] == first.json["id"]
    assert again.headers["location"] == first.headers["location"]
    assert (await site.engine.log.counts()).runs == 2
    found = (await site.get(f"/v1/runs?idempotency_key={key}")).json["runs"]
    assert [each["id"] for each in found] == [first.json["id"]]
    assert (await site.create(shuffled, key=key)).status == 200
    assert (await site.create({"input": "other"}, key=key)).code == "idempotency_conflict"


async def test_other_answers_are_refused(sites, a_log):
    """RS-56: a second different answer conflicts, and the refused create leaves its key unused."""
    site = await sites(PAUSES, log=a_log)
    run = await site.settled()
    first = await site.run(answers(run, YES))
    other = await site.create(answers(run, NO), key="k")
    assert (other.status, other.code, other.json["continued_by"]) == (409, "action_resolved", first["id"])
    assert (await site.create(answers(run, YES), key="k")).status == 200


async def test_two_who_answer_at_once_make_one_continuation(sites, a_log):
    """RS-89, B71: resolution and continuation are one transaction, so one of them wins and both can see who."""
    site = await sites(PAUSES, log=a_log)
    run = await site.settled()
    found = await asyncio.gather(*(site.create(answers(run, YES if n % 2 else NO)) for n in range(10)))
    made = [answer.json for answer in found if answer.status == 201]
    assert len(made) == 1
    assert {(answer.status, answer.json.get("code")) for answer in found} == {
        (201, None), (200, None), (409, "action_resolved"),
    }  # fmt: skip
    assert (await site.get(f"/v1/runs/{run['id']}")).json["continued_by"] == made[0]["id"]
    assert (await site.engine.log.counts()).runs == 2


@pytest.mark.parametrize(
    ("responses", "status", "code", "ids"),
    [
        ([], 422, "actions_unanswered", ["act_1", "act_2", "act_3"]),
        (YES[1:], 422, "actions_unanswered", ["act_1"]),
        ([*YES, {"action_id": "act_9", "decision": "approve"}], 422, "action_unknown", ["act_9"]),
    ],
)
async def test_all_actions_are_answered_and_no_others(sites, responses, status, code, ids):
    """The problem names which; nothing is resolved by a refused answer."""
    site = await sites(PAUSES)
    run = await site.settled()
    answer = await site.create(answers(run, responses))
    assert (answer.status, answer.code, answer.json["action_ids"]) == (status, code, ids)
    assert (await site.get(f"/v1/runs/{run['id']}")).json == run
    assert (await site.engine.log.counts()).runs == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"action_id": "act_1"},
        {"action_id": 1, "decision": "approve"},
        {"action_id": "act_1", "decision": "maybe"},
        {"action_id": "act_1", "decision": "approve", "reason": 7},
        {"action_id": "act_1", "decision": "approve", "result": 1},
        {"action_id": "act_1", "result": 1, "error": "x"},
        {"action_id": "act_1", "result": "of no client tool"},
        {"action_id": "act_2", "decision": "approve"},
        {"action_id": "act_3", "error": "of no client tool"},
        {"action_id": "act_1", "decision": "approve", "extra": 1},
        {"action_id": "act_2", "result": 1, "reason": "none here"},
        "act_1",
        None,
    ],
)
async def test_what_is_no_response_is_an_invalid_request(sites, wrong):
    site = await sites(PAUSES)
    run = await site.settled()
    rest = [
        response for response in YES if not isinstance(wrong, dict) or response["action_id"] != wrong.get("action_id")
    ]
    answer = await site.create(answers(run, [wrong, *rest]))
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert (await site.engine.log.counts()).runs == 1


@pytest.mark.parametrize(
    "more", [{"responses": None}, {"responses": {}}, {"session_id": "other"}, {"responses": YES * 2}]
)
async def test_what_is_no_continuation_is_an_invalid_request(sites, more):
    site = await sites(PAUSES)
    run = await site.settled({"input": "x", "session_id": "s"})
    assert (await site.create({**answers(run, YES), **more})).code == "invalid_request"
    assert (await site.create(answers(run, YES, session_id="s"))).status == 201


async def test_refusals_of_an_answer_come_in_the_order_of_the_page(sites):
    """Each call below has the faults of those after it, as far as one run can; the first on the page answers."""
    clock = [1_000_000]
    actions = (Action(id="a", tool="t", expires_in_ms=1_000), Action(id="b", tool="t", release_in_ms=500))
    script = Script(name="s", steps=(Ask(actions=actions),))
    site = await sites(script, quiet(), now=lambda: clock[0])
    running = await site.run({"input": {"scenario": "quiet"}})
    answered, waiting = await site.settled(), await site.settled()

    def yes(*ids):
        return [{"action_id": each, "decision": "approve"} for each in ids]

    await site.run(answers(answered, yes("a", "b")))
    no = [{"action_id": each, "decision": "reject"} for each in "ab"]
    calls = [
        ({"id": "run_none"}, "nonsense"),
        (running, "nonsense"),
        (running, yes("z")),
        (answered, yes("a", "z")),
        (answered, [*no, *yes("z")]),
        (answered, no),
        (waiting, yes("a", "b")),
    ]
    site.engine.overload(10, 503)
    codes = [(await site.create(answers(*calls[0]))).code]
    clock[0] += 2_000
    codes += [(await site.create(answers(*call))).code for call in calls]
    fresh = await site.settled()
    clock[0] += 500
    codes.append((await site.create(answers(fresh, yes("a", "b")))).code)
    assert codes == [
        "overloaded", "run_not_found", "invalid_request", "not_paused", "actions_unanswered", "action_unknown",
        "action_resolved", "action_expired", "approval_stale",
    ]  # fmt: skip


async def test_a_client_tool_may_answer_with_an_error(sites):
    site = await sites(PAUSES)
    run = await site.settled()
    failed = {"action_id": "act_2", "error": {"code": "denied", "message": "no clipboard"}}
    after = await site.settled(answers(run, [YES[0], failed, YES[2]]))
    resolved = [event["data"]["response"] for event in await events(site, after) if event["type"] == "action.resolved"]
    assert resolved[1] == failed
    assert (await site.get(f"/v1/runs/{run['id']}")).json["required_actions"][1]["resolution"] == "answered"


@pytest.mark.parametrize("script", [QUICK, quiet()])
async def test_only_a_paused_run_is_continued(sites, script):
    site = await sites(script)
    run = await site.run()
    if script is QUICK:
        await site.until_settled(run["id"])
    answer = await site.create(answers(run, []))
    assert (answer.status, answer.code) == (409, "not_paused")


async def test_a_run_that_is_unknown_or_anothers_cannot_be_answered(sites):
    """RS-65: the same answer for both, before the answers are looked at."""
    site = await sites(PAUSES, tokens=parse_tokens(["alice a1", "bob b1"]))
    run = await site.settled(Authorization="Bearer a1")
    theirs = await site.create(answers(run, "nonsense"), Authorization="Bearer b1")
    none = await site.create({"continues": "run_" + "0" * 20, "responses": "nonsense"}, Authorization="Bearer b1")
    assert (theirs.status, theirs.code, none.code) == (404, "run_not_found", "run_not_found")
    assert theirs.body.replace(run["id"].encode(), b"run_" + b"0" * 20) == none.body


async def test_an_expired_pause_can_only_be_left(sites, a_log):
    """One action expires them all, and they stay so: when the clock goes back, and when another run comes."""
    clock = [1_000_000]
    steps = (Ask(actions=(Action(id="a", tool="t", expires_in_ms=1_000), Action(id="b", tool="t"))),)
    site = await sites(Script(name="s", steps=steps), log=a_log, now=lambda: clock[0])
    run = await site.settled({"input": "x", "session_id": "s"})
    yes = answers(run, [{"action_id": each, "decision": "approve"} for each in "ab"])
    clock[0] += 1_000
    late = await site.create(yes)
    assert (late.status, late.code) == (409, "action_expired")
    clock[0] -= 1_000
    assert (await site.create(yes)).code == "action_expired"
    await site.run({"input": "y", "session_id": "s"})
    paused = (await site.get(f"/v1/runs/{run['id']}")).json
    assert [action["resolution"] for action in paused["required_actions"]] == ["expired", "expired"]
    assert (await site.create(yes)).code == "action_expired"


async def test_an_expired_pause_can_be_read_while_the_log_cannot_be_written(sites):
    """That it has expired is noted when it is seen; where it cannot be noted it is seen all the same."""

    class Full(MemoryLog):
        async def resolve(self, *args):
            raise LogUnavailable("no space left")

    clock = [1_000_000]
    steps = (Ask(actions=(Action(id="a", tool="t", expires_in_ms=1_000),)),)
    site = await sites(Script(name="s", steps=steps), log=Full(), now=lambda: clock[0])
    run = await site.settled()
    clock[0] += 1_000
    answer = await site.get(f"/v1/runs/{run['id']}")
    assert (answer.status, answer.json["required_actions"][0]["resolution"]) == (200, "expired")


async def test_an_answer_in_time_stays_one(sites):
    """What was approved before it expired reads approved for ever."""
    clock = [1_000_000]
    steps = (Ask(actions=(Action(id="a", tool="t", expires_in_ms=1_000),)),)
    site = await sites(Script(name="s", steps=steps), now=lambda: clock[0])
    run = await site.settled()
    clock[0] += 999
    assert (await site.create(answers(run, [{"action_id": "a", "decision": "approve"}]))).status == 201
    clock[0] += 1_000_000
    assert (await site.get(f"/v1/runs/{run['id']}")).json["required_actions"][0]["resolution"] == "approved"


async def test_a_lapsed_or_cancelled_action_takes_no_answer(sites, a_log):
    site = await sites(PAUSES, log=a_log)
    lapsed = await site.settled({"input": "x", "session_id": "s"})
    cancelled = await site.settled({"input": "y", "session_id": "s"})
    await site.call("POST", f"/v1/runs/{cancelled['id']}/cancel")
    for run in (lapsed, cancelled):
        answer = await site.create(answers(run, YES))
        assert (answer.status, answer.code) == (409, "action_resolved")
    assert (await site.engine.log.counts()).runs == 2


async def test_a_cancel_after_the_answer_leaves_it(sites):
    site = await sites(PAUSES)
    run = await site.settled()
    await site.run(answers(run, YES))
    answer = await site.call("POST", f"/v1/runs/{run['id']}/cancel")
    assert answer.status == 200
    assert [action["resolution"] for action in answer.json["required_actions"]] == ["approved", "answered", "approved"]


async def test_an_approval_is_stale_once_another_release_has_taken_over(sites):
    """What was approved is looked at again; a rejection needs no second look, and the change is an event of its run."""
    clock = [1_000_000]
    steps = (Release(release="r7"), Ask(actions=(Action(id="a", tool="t", release_in_ms=300),)), Status(text="after"))
    site = await sites(Script(name="s", steps=steps), now=lambda: clock[0])
    early, late = await site.settled(), await site.settled()
    yes, no = ({"action_id": "a", "decision": decision} for decision in ("approve", "reject"))
    after = await site.settled(answers(early, [yes]))
    assert (after["release"], kinds(await events(site, after)).count("release.changed")) == ("r7", 0)
    clock[0] += 300
    stale = await site.create(answers(late, [yes]))
    assert (stale.status, stale.code) == (409, "approval_stale")
    assert (stale.json["action_ids"], stale.json["release"]) == (["a"], "r8")
    assert (await site.get(f"/v1/runs/{late['id']}")).json["required_actions"][0]["resolution"] is None
    after = await site.settled(answers(late, [no]))
    log = await events(site, after)
    assert kinds(log)[:4] == ["run.created", "action.resolved", "release.changed", "run.started"]
    assert (log[2]["data"], after["release"]) == ({"release": "r8"}, "r8")
    assert (await site.create(answers(early, [yes]))).status == 200, "what was answered in time is not judged again"


@pytest.mark.parametrize(("before", "after"), [(None, "r2"), ("r7", "r8"), ("2026.9", "2026.10"), ("blue", "blue.2")])
def test_the_release_that_takes_over_has_the_next_name(before, after):
    assert next_release(before) == after


@pytest.mark.parametrize(
    "ask", [Ask(actions=(Action(id="a", tool="t", arguments={"cents": 2}),)), Status(text="the ask is gone")]
)
async def test_an_approval_is_stale_if_what_it_was_given_for_has_changed(sites, tmp_path, ask):
    """The server came back with another scenario under the same name: nobody approved that."""
    old = Script(name="s", steps=(Ask(actions=(Action(id="a", tool="t", arguments={"cents": 1}),)),))
    first = await sites(old, log=SqliteLog(tmp_path / "log.db"))
    run = await first.settled()
    await first.close()
    second = await sites(Script(name="s", steps=(ask,)), log=SqliteLog(tmp_path / "log.db"))
    answer = await second.create(answers(run, [{"action_id": "a", "decision": "approve"}]), key="answer")
    assert (answer.status, answer.code) == (409, "approval_stale")


async def test_a_continuation_may_pause_again(sites):
    """Asks inside asks: each continuation goes on where its run paused, and outwards from there."""
    inner = Ask(actions=(Action(id="b", tool="t"),), approved=(Status(text="inner"),), rejected=(Status(text="no"),))
    steps = (Ask(actions=(Action(id="a", tool="t"),), approved=(inner, Status(text="outer"))), Status(text="last"))
    site = await sites(Script(name="s", clock="virtual", steps=steps))
    run = await site.settled()
    second = await site.settled(answers(run, [{"action_id": "a", "decision": "approve"}]))
    assert second["status"] == "requires_action"
    third = await site.settled(answers(second, [{"action_id": "b", "decision": "approve"}]))
    said = [event["data"]["text"] for event in await events(site, third) if event["type"] == "status"]
    assert (third["status"], said) == ("completed", ["inner", "outer", "last"])


async def test_an_answer_outlives_the_process(sites, tmp_path):
    """The continuation is played by the next process, the paused run knows it, equal answers find it."""
    script = Script(
        name="s",
        steps=(Ask(actions=(Action(id="a", tool="t"),), approved=(Tool(tool="t", result={}),)), Wait(ms=40), Status(text="x")),
    )  # fmt: skip
    first = await sites(script, log=SqliteLog(tmp_path / "log.db"))
    run = await first.settled()
    yes = answers(run, [{"action_id": "a", "decision": "approve"}])
    after = await first.run(yes)
    await first.create(yes, key="alias")
    await first.close()
    second = await sites(script, log=SqliteLog(tmp_path / "log.db"))
    assert (await second.until_settled(after["id"]))["status"] == "completed"
    assert [effect.operation_id for effect in await second.engine.log.effects(after["id"])] == [
        run["required_actions"][0]["operation_id"]
    ]
    assert (await second.get(f"/v1/runs/{run['id']}")).json["continued_by"] == after["id"]
    for key in ("alias", "new"):
        assert (await second.create(yes, key=key)).json["id"] == after["id"]
    assert (await second.engine.log.counts()).runs == 2


class Dying(MemoryLog):
    """Lets a process die at its n-th write after `arm`: what was written stays, the answer is never given."""

    def __init__(self):
        super().__init__()
        self.left = 0
        self.before = False
        self.died = asyncio.Event()

    def arm(self, dies_at, *, before):
        self.left, self.before = dies_at, before

    async def _maybe(self, write):
        self.left -= 1
        if self.left == 0 and self.before:
            write.close()
        result = None if self.left == 0 and self.before else await write
        if self.left == 0:
            self.died.set()
            await asyncio.get_running_loop().create_future()
        return result

    async def create(self, *args, **kwargs):
        return await self._maybe(super().create(*args, **kwargs))

    async def append(self, *args, **kwargs):
        return await self._maybe(super().append(*args, **kwargs))

    async def perform(self, *args):
        return await self._maybe(super().perform(*args))


async def play(site, exchange):
    """Take the answer of a create, and wait until its run has settled."""
    await site.until_settled(json.loads(await exchange.rest())["id"])


@pytest.mark.parametrize("before", [True, False])
async def test_killed_at_any_write_an_answer_counts_once(sites, before):
    """RS-45, RS-56, RS-89: at each write from the answer on, before it and after it; the answer is sent again each time."""
    whole = await sites(PAUSES, deterministic=True)
    run = await whole.settled()
    expected = await events(whole, await whole.settled(answers(run, YES)))
    for at in range(1, 50):
        log = Dying()
        site = await sites(PAUSES, log=log, deterministic=True)
        run = await site.settled()
        log.arm(at, before=before)
        first = site.send("POST", "/v1/runs", {"Idempotency-Key": "k"}, json.dumps(answers(run, YES)).encode())
        dying = asyncio.create_task(log.died.wait())
        played = asyncio.create_task(play(site, first))
        await asyncio.wait([played, dying], return_when=asyncio.FIRST_COMPLETED)
        if not log.died.is_set():
            dying.cancel()
            break
        if not first.task.done():  # the create itself has died: nobody will be answered
            first.task.cancel()
            await asyncio.gather(played, first.task, return_exceptions=True)
        paused = (await site.get(f"/v1/runs/{run['id']}")).json
        assert (paused["continued_by"] is None) == ((await log.counts()).runs == 1), at
        await site.engine.restart()
        again = await site.create(answers(run, YES), key="again")
        await site.until_settled(again.json["id"])
        await asyncio.gather(played, return_exceptions=True)
        # A create that was never written has used up a name: deterministic ids count creates.
        assert [event["data"] for event in await events(site, again.json)] == [event["data"] for event in expected], at
        assert (await log.counts()).runs == 2, at
        operation = await log.operation("anyone", run["required_actions"][0]["operation_id"])
        assert ((await log.counts()).effects, operation.status) == (1, "committed"), at
    assert at > 4, "the continuation has enough writes to be worth it"


async def test_a_continuation_that_loses_its_tail_begins_as_it_did(sites):
    site = await sites(PAUSES)
    run = await site.settled()
    after = await site.settled(answers(run, YES))
    before = await events(site, after)
    await site.engine.new_epoch(after["id"], keep=1)
    await site.until_settled(after["id"])
    assert [event["data"] for event in await events(site, after)] == [event["data"] for event in before]


@pytest.mark.parametrize("keep", range(3, 8))
async def test_a_pause_that_loses_its_tail_asks_for_nothing_twice(sites, a_log, keep):
    """Found by a drawn schedule: what was asked for and is still in the log is asked for no more, and listed as it was."""
    site = await sites(PAUSES, log=a_log)
    run = await site.settled()
    before = await events(site, run)
    await site.engine.new_epoch(run["id"], keep=keep)
    again = await site.until_settled(run["id"])
    after = await events(site, run)
    assert kinds(after) == kinds(before)
    asked = [event for event in after if event["type"] == "action.required"]
    assert [action["source_event_id"] for action in again["required_actions"]] == [event["id"] for event in asked]
    assert [event["data"]["action"] for event in asked] == again["required_actions"]


async def test_the_next_recording_is_the_continuation(sites):
    """Without one it completes at once."""
    ending = Ending(actions=(Action(id="a", tool="t"),))
    told = (RecordedEvent(at_ms=0, type="vendor.note", data={}),)
    first, second = (Recording(name=name, profile=None, events=told, ending=ending) for name in ("one", "two"))
    site = await sites(first, QUICK, second)
    run = await site.settled({"input": {"scenario": "one"}})
    yes = [{"action_id": "a", "decision": "approve"}]
    after = await site.settled(answers(run, yes))
    assert (after["status"], kinds(await events(site, after))[3]) == ("requires_action", "vendor.note")
    last = await site.settled(answers(after, yes))
    assert (last["status"], kinds(await events(site, last))) == (
        "completed", ["run.created", "action.resolved", "run.started", "run.completed"],
    )  # fmt: skip


async def test_an_answer_that_would_be_too_large_an_event_is_refused(sites):
    """Nothing is resolved, so a shorter one may follow."""
    site = await sites(PAUSES, limits=Limits(event_bytes=2_000))
    run = await site.settled()
    long = [YES[0], {"action_id": "act_2", "result": "x" * 2_000}, YES[2]]
    answer = await site.create(answers(run, long))
    assert (answer.status, answer.code) == (413, "event_too_large")
    assert (await site.create(answers(run, YES))).status == 201


async def test_a_continuation_counts_against_the_limit_on_runs(sites):
    site = await sites(PAUSES, quiet(), limits=Limits(runs_per_principal=1))
    run = await site.settled()
    await site.run({"input": {"scenario": "quiet"}})
    answer = await site.create(answers(run, YES))
    assert (answer.status, answer.code) == (429, "overloaded")
    assert (await site.get(f"/v1/runs/{run['id']}")).json["continued_by"] is None


async def test_actions_that_are_too_large_are_the_runs_failure(sites):
    """Not one event above the limit is appended, and what was asked for will not come."""
    big = Action(id="a", tool="t", operation_id="op_big", arguments={"x": "y" * 3_000})
    site = await sites(
        Script(name="s", clock="virtual", steps=(Ask(actions=(big,)),)), limits=Limits(event_bytes=2_000)
    )
    run = await site.settled()
    assert (run["status"], run["error"]["code"]) == ("failed", "event_too_large")
    assert kinds(await events(site, run)) == ["run.created", "run.started", "run.failed"]
    many = tuple(Action(id=f"a{n}", tool="t", operation_id=f"op_{n}", arguments={"x": "y" * 500}) for n in range(4))
    site = await sites(Script(name="s", clock="virtual", steps=(Ask(actions=many),)), limits=Limits(event_bytes=2_000))
    run = await site.settled()
    assert (run["status"], run["error"]["code"]) == ("failed", "event_too_large")
    assert (await site.get("/v1/operations/op_0")).json["status"] == "failed"


async def test_a_continuation_by_socket_is_the_one_by_http(sites):
    """The same judgement and the same transaction, whichever face brings the answers."""
    site = await sites(PAUSES)
    run = await site.settled()
    wrong = await Dialogue(site).opened()
    wrong.say("start", idempotency_key="k0", **answers(run, YES[1:]))
    refused = await wrong.messages()
    assert [(each["type"], each["code"], each["action_ids"]) for each in refused] == [
        ("error", "actions_unanswered", ["act_1"])
    ]
    dialogue = await Dialogue(site).opened()
    dialogue.say("start", idempotency_key="k1", **answers(run, YES))
    first, *found = await dialogue.messages()
    assert (first["type"], first["run"]["continues"]) == ("started", run["id"])
    assert found[-1]["event"]["type"] == "run.completed"
    assert (await site.create(answers(run, YES), key="k2")).json["id"] == first["run"]["id"]
