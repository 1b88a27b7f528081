"""Continuation: what does the paused run need? All of it is answered by id, in a run of its own, once (contract: recoveries)."""

import dataclasses
import json
import sqlite3

import pytest

from client_stage import Facts, collected, in_memory
from reattach import Status, errors
from reattach.testing import Beat, Leg, Trip

pytestmark = pytest.mark.anyio

TWO = [
    {"id": "act_1", "tool": "refund", "arguments": {"cents": 999}, "thread": "billing", "operation_id": "op_1"},
    {"id": "act_2", "tool": "restart_service", "expires_at": "2030-01-01T00:00:00Z"},
]
TOOL = [{"id": "act_1", "kind": "client_tool", "tool": "clock"}]


def paused(actions=TWO, **plans):
    """A run that says a word and pauses."""
    return in_memory(story=[Beat(), Beat(do="pause", data=actions)], **plans)


def creates(server):
    return server.wire.calls("POST", "/v1/runs")


async def approved(run):
    outcome = await run.wait()
    return [action.approve() for action in outcome.required_actions]


async def test_a_pause_tells_what_it_waits_for_with_its_sub_agent(face, journal):
    """In the outcome and in the view: id, kind, tool, arguments, thread, operation, expiry, and the event that asked."""
    server, args = paused()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        outcome = await run.wait()
        view = await run.view()
    assert outcome.status is Status.REQUIRES_ACTION
    first, second = outcome.required_actions
    assert (first.id, first.kind, first.tool, first.arguments) == ("act_1", "approval", "refund", {"cents": 999})
    assert (first.thread, first.operation_id, second.thread) == ("billing", "op_1", None)
    assert second.expires_at.year == 2030
    asked = [event.id for event in server.run.log if event.type == "action.required"]
    assert [first.source_event_id, second.source_event_id] == asked
    assert [each.id for each in view.required_actions] == ["act_1", "act_2"]
    assert view.required_actions[0].thread == "billing"


async def test_all_answers_make_a_new_run_in_the_session(face, journal):
    """The program of surface.md 1.2: pause, answers, continuation, until nothing is asked any more."""
    server, args = paused(continuations=[[Beat(), Beat(do="pause", data=TOOL)], [Beat(do="end", data="done")]])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        first = run.id
        outcome = await run.wait()
        seen = []
        while outcome.required_actions:
            answers = [
                each.answer({"now": 12}) if each.kind == "client_tool" else each.reject("too dear")
                for each in outcome.required_actions
            ]
            run = await run.respond(*answers)
            seen.append((run.id, run.session_id, run.key))
            outcome = await run.wait()
    assert (outcome.status, outcome.result) == (Status.COMPLETED, "done")
    assert seen == [("run_2", "ses_1", None), ("run_3", "ses_1", None)]
    assert [run.continues for run in server.runs.values()] == [None, first, "run_2"]
    sent = [json.loads(call.body) for call in creates(server)[1:]]
    rejected = {"decision": "reject", "reason": "too dear"}
    assert sent[0]["responses"] == [{"action_id": "act_1", **rejected}, {"action_id": "act_2", **rejected}]
    assert sent[1]["responses"] == [{"action_id": "act_1", "result": {"now": 12}}]


async def test_the_continuation_begins_with_the_answers(face, journal):
    """Every client that reads it sees who was answered how: its first events are `action.resolved`."""
    _, args = paused()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        events = await collected(await run.respond(*await approved(run)))
    assert [event.type for event in events] == ["run.created", "action.resolved", "action.resolved", "run.completed"]
    assert events[1].data["response"] == {"action_id": "act_1", "decision": "approve"}


async def test_answers_that_are_missing_are_named_before_anything_is_sent(face, journal):
    server, args = paused()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        first, second = await approved(run)
        with pytest.raises(errors.ActionsUnanswered) as caught:
            await run.respond(first)
        with pytest.raises(errors.ActionsUnanswered, match=r"'act_1' .* 'act_2' .* have no answer"):
            await run.respond()
        assert len(creates(server)) == 1
        assert run.id == (await client.runs())[0].id
        assert len(await client.runs()) == 1
        assert (await run.respond(second, first)).id == "run_2"
    assert str(caught.value) == (
        f"run {run.id!r} waits for 2 actions; 'act_2' (approval of restart_service) has no answer. Nothing was sent. "
        "Answer all of outcome.required_actions in one respond()."
    )
    assert caught.value.run_id == run.id


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda action: [dataclasses.replace(action, id="act_9").approve()], "there is no action 'act_9'"),
        (lambda action: [action.approve(), action.reject()], "action 'act_1' has two answers"),
        (lambda action: [action.answer(1)], "action 'act_1' is an approval"),
        (lambda action: ["yes"], "'yes' is no answer"),
    ],
)
async def test_an_answer_that_cannot_be_right_is_refused_before_anything_is_sent(face, made, told):
    server, args = paused(TWO[:1])
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        (action,) = (await run.wait()).required_actions
        with pytest.raises(errors.UsageError, match=told):
            await run.respond(*made(action))
    assert len(creates(server)) == 1


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda action: action.approve(), "asks for a tool's result"),
        (lambda action: action.answer({1, 2}), "not JSON"),
    ],
)
async def test_a_tools_result_that_cannot_be_sent_is_refused(face, made, told):
    server, args = paused(TOOL)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        (action,) = (await run.wait()).required_actions
        with pytest.raises(errors.UsageError, match=told):
            await run.respond(made(action))
    assert len(creates(server)) == 1


async def test_a_tool_that_is_refused_tells_the_agent_why(face):
    """The protocol has `result` or `error` for a client's tool, no decision."""
    server, args = paused(TOOL)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        (action,) = (await run.wait()).required_actions
        await run.respond(action.reject("no clock here"))
    (response,) = json.loads(creates(server)[1].body)["responses"]
    assert response == {"action_id": "act_1", "error": {"code": "rejected", "message": "no clock here"}}


async def test_a_run_that_waits_for_nothing_takes_no_answer(face):
    server, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        await run.wait()
        with pytest.raises(errors.UsageError, match="waits for no answer: it is completed"):
            await run.respond()
    assert len(creates(server)) == 1


# safe to repeat ---------------------------------------------------------------------------------------------------------


async def test_the_same_answers_again_are_the_same_run_and_send_nothing(face, journal):
    """In any order, in this process and the next."""
    server, args = paused()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        first, second = await approved(run)
        made = await run.respond(first, second)
        assert (await run.respond(second, first)).id == made.id
    async with face.client(journal=journal, **args) as client:
        assert (await client.attach(run.id).respond(first, second)).id == made.id
    assert len(creates(server)) == 2


async def test_a_lost_answer_to_the_answers_makes_one_run(face, journal):
    """The same create again, under the same key, which is the digest of the paused run and the answers."""
    server, args = paused(creates=[Trip(), Trip(lost="after"), Trip(lost="before")])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        made = await run.respond(*await approved(run))
        assert made.id == "run_2"
    keys = [call.headers["idempotency-key"] for call in creates(server)]
    assert len(server.runs) == 2
    assert keys[1:] == [keys[1]] * 3
    assert len(keys[1]) == 64
    assert keys[1] == rows(journal, "request_sha256", "continues IS NOT NULL")[0][0]


async def test_the_key_of_the_answers_is_another_for_other_answers_and_another_run(face):
    keys = set()
    for decide in ("approve", "reject"):
        for run_number in (1, 2):
            server, args = paused(TWO[:1])
            async with face.client(journal=":memory:", **args) as client:
                run = None
                for number in range(run_number):
                    run = await client.start("work", key=f"k{number}")
                (action,) = (await run.wait()).required_actions
                await run.respond(getattr(action, decide)())
            keys.add(creates(server)[-1].headers["idempotency-key"])
    assert len(keys) == 4


def rows(journal, columns, where="true"):
    with sqlite3.connect(journal) as connection:
        found = connection.execute(f"SELECT {columns} FROM reattach_runs WHERE {where} ORDER BY run").fetchall()
    connection.close()
    return found


async def test_the_intent_of_the_answers_is_on_disk_before_they_leave(face, journal):
    """Promise 1, for the continuation: body and digest before, the run id after; then the body is erased."""
    server, args = paused()
    seen = []
    answer = server.answer_call
    columns = "key, continues, run_id, request IS NULL, length(request_sha256)"
    server.answer_call = lambda sent: (
        seen.append(rows(journal, columns)) if sent.method == "POST" else None,
        answer(sent),
    )[1]
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        await run.respond(*await approved(run))
    assert seen[1][1] == (None, "run_1", None, 0, 64)
    assert rows(journal, columns)[1] == (None, "run_1", "run_2", 1, 64)


async def test_answers_that_were_never_acknowledged_go_on_in_the_next_process(face, journal):
    """B45, for the continuation. Given up on, they are listed; `start` with the job's key sends them again and gives their run."""
    _, args = paused(creates=[Trip(), *[Trip(lost="after")] * 40])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        answers = await approved(run)
        with pytest.raises(errors.ReconnectExhausted, match="the response to run 'run_1' was not answered"):
            await run.respond(*answers)
    server, args = paused()
    server.create("k", b'{"input":"work"}')
    async with face.client(journal=journal, **args) as client:
        listed = await client.runs(unfinished=True)
        assert [(each.id, each.key, each.needs) for each in listed] == [("", None, "follow")]
        made = await client.start("work", key="k")
        assert made.id == "run_2"
        assert (await made.wait()).status is Status.COMPLETED
        assert server.runs["run_2"].continues == "run_1"
        assert (await client.attach("run_1").respond(*answers)).id == "run_2"
    assert len(server.runs) == 2


async def test_following_the_answers_sends_them_again_too(face, journal):
    """The listed run is followed like any other: its create goes first."""
    _, args = paused(creates=[Trip(), *[Trip(lost="before")] * 40])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        answers = await approved(run)
        with pytest.raises(errors.ReconnectExhausted):
            await run.respond(*answers)
    server, args = paused()
    server.create("k", b'{"input":"work"}')
    async with face.client(journal=journal, **args) as client:
        (made,) = await client.runs(unfinished=True)
        assert [event.type for event in await collected(made)][-1] == "run.completed"
        assert made.id == "run_2"


async def unacknowledged(face, journal):
    """Leave approvals that may or may not have been taken, and return them."""
    _, args = paused(creates=[Trip(), *[Trip(lost="before")] * 40])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        answers = await approved(run)
        with pytest.raises(errors.ReconnectExhausted):
            await run.respond(*answers)
    return answers


async def test_who_thinks_better_of_it_leaves_no_old_intent(face, journal):
    """The server takes one continuation: with the new answers taken, the old ones can make none, and are not sent again."""
    await unacknowledged(face, journal)
    server, args = paused()
    server.create("k", b'{"input":"work"}')
    async with face.client(journal=journal, **args) as client:
        run = client.attach("run_1")
        made = await run.respond(*[action.reject() for action in (await run.wait()).required_actions])
        assert [each.id for each in await client.runs()] == [made.id, "run_1"]
    assert len(creates(server)) == 1


async def test_answers_that_come_too_late_the_second_time_are_forgotten(face, journal):
    """Sent again by `start`, refused for good: said once; after that the key means the run of who was first."""
    await unacknowledged(face, journal)
    server, args = paused()
    server.create("k", b'{"input":"work"}')
    responses = [{"action_id": each["id"], "decision": "reject"} for each in TWO]
    server.create("other", json.dumps({"continues": "run_1", "responses": responses}).encode())
    async with face.client(journal=journal, **args) as client:
        with pytest.raises(errors.ActionResolved):
            await client.start("work", key="k")
        assert (await client.start("work", key="k")).id == "run_2"
        assert [each.id for each in await client.runs()] == ["run_2", "run_1"]


async def test_a_run_that_exists_is_newer_than_answers_on_their_way(face, journal, tmp_path):
    """This journal heard of the run that goes on, then other answers of its own were never acknowledged."""
    server, args = paused(creates=[Trip(), Trip(), Trip(), *[Trip(lost="before")] * 40])
    async with face.client(journal=tmp_path / "first.db", **args) as client:
        run = await client.start("work", key="k")
        answers = await approved(run)
        made = await run.respond(*answers)
    async with face.client(journal=journal, **args) as client:
        assert (await client.start("work", key="k")).id == made.id
        with pytest.raises(errors.ReconnectExhausted):
            await client.attach(run.id).respond(*[dataclasses.replace(each, decision="reject") for each in answers])
        assert (await client.start("work", key="k")).id == made.id
    assert len(server.runs) == 2


# the job's newest run ---------------------------------------------------------------------------------------------------


async def test_start_with_the_key_gives_the_newest_run_of_the_job(face, journal):
    """In the next process, too; and no network is needed for it."""
    server, args = paused()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        made = await run.respond(*await approved(run))
        assert await made.result() == "ok"
    before = len(server.wire.requests)
    async with face.client(journal=journal, **args) as client:
        again = await client.start("work", key="k")
        assert again.id == made.id
        assert await again.result() == "ok"
    assert len(server.wire.requests) == before


async def test_start_from_another_journal_gives_the_newest_run_too(face, journal, tmp_path):
    """The server tells which run answered the pause."""
    _, args = paused()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        made = await run.respond(*await approved(run))
    async with face.client(journal=tmp_path / "other.db", **args) as client:
        again = await client.start("work", key="k")
        assert again.id == made.id
        assert again.session_id == "ses_1"


async def test_a_server_that_is_away_gives_the_newest_run_that_the_journal_knows(face, journal):
    _, args = paused()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        await run.wait()
    _, args = paused(statuses=[Trip(lost="before")])
    async with face.client(journal=journal, **args) as client:
        again = await client.start("work", key="k")
        assert (again.id, again.needs) == (run.id, "respond")


async def test_an_answered_pause_needs_nothing_more(face, journal):
    """`needs`: respond, until its continuation exists; then that one is what is unfinished."""
    _, args = paused()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        answers = await approved(run)
        assert [each.needs for each in await client.runs()] == ["respond"]
        made = await run.respond(*answers)
        assert run.needs == "nothing"
        assert [(each.id, each.needs) for each in await client.runs()] == [(made.id, "follow"), (run.id, "nothing")]


# somebody else ------------------------------------------------------------------------------------------------------------


async def test_who_answers_second_and_otherwise_is_told_who_was_first(face, journal, tmp_path):
    """B71: two clients, one answers. The other one's answer is refused, typed, and its journal knows the run that goes on."""
    server, args = paused()
    async with face.client(journal=journal, **args) as first, face.client(journal=tmp_path / "2.db", **args) as second:
        mine = await first.start("work", key="k")
        answers = await approved(mine)
        other = second.attach(mine.id)
        actions = (await other.wait()).required_actions
        assert [run.needs for run in await second.runs()] == ["respond"]
        made = await mine.respond(*answers)
        with pytest.raises(errors.ActionResolved, match=f"run '{made.id}' goes on from it") as caught:
            await other.respond(*[action.reject() for action in actions])
        assert (caught.value.run_id, caught.value.problem) == (mine.id, "action_resolved")
        listed = [(run.id, run.needs) for run in await second.runs(unfinished=True)]
        assert listed == [(made.id, "follow")]
        assert await second.attach(made.id).result() == "ok"
    assert len(server.runs) == 2


async def test_who_answers_second_and_the_same_gets_the_same_run(face, journal, tmp_path):
    server, args = paused()
    async with face.client(journal=journal, **args) as first, face.client(journal=tmp_path / "2.db", **args) as second:
        mine = await first.start("work", key="k")
        made = await mine.respond(*await approved(mine))
        other = second.attach(mine.id)
        assert (await other.respond(*await approved(other))).id == made.id
    assert len(server.runs) == 2


async def test_other_answers_after_our_own_are_refused_without_asking(face, journal):
    server, args = paused()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        await run.respond(*await approved(run))
        actions = (await run.wait()).required_actions
        before = len(server.wire.requests)
        with pytest.raises(errors.ActionResolved, match=r"answered before, otherwise: run 'run_2'.*Nothing was sent"):
            await run.respond(*[action.reject() for action in actions])
        assert len(server.wire.requests) == before


@pytest.mark.parametrize("resolution", ["lapsed", "cancelled", "expired"])
async def test_a_pause_that_is_over_takes_no_answer_and_needs_none(face, journal, resolution):
    server, args = paused()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        answers = await approved(run)
        for action in server.run.actions.values():
            action["resolution"] = resolution
        with pytest.raises(errors.ActionResolved, match="is over"):
            await run.respond(*answers)
        assert run.needs != "respond"
        assert [each.needs for each in await client.runs()] == ["nothing"]
        assert len(await client.runs()) == 1
    assert len(server.runs) == 1


async def test_a_stale_approval_is_told_and_the_pause_stands(face, journal):
    """What was approved has changed. Nothing was created, no intent stays; a rejection is still taken."""
    server, args = paused(TWO[:1])
    server.acting.stale.add("act_1")
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        (action,) = (await run.wait()).required_actions
        with pytest.raises(errors.ApprovalStale, match="has changed since") as caught:
            await run.respond(action.approve())
        assert (caught.value.run_id, caught.value.problem) == (run.id, "approval_stale")
        assert [each.needs for each in await client.runs()] == ["respond"]
        assert (await run.respond(action.reject())).id == "run_2"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("actions_unanswered", errors.ActionsUnanswered),
        ("action_unknown", errors.RespondError),
        ("action_expired", errors.ActionResolved),
        ("not_paused", errors.ActionResolved),
    ],
)
async def test_each_refusal_of_answers_has_its_class(face, journal, code, error):
    _, args = paused(creates=[Trip(), Trip(refuse=422, code=code)])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        with pytest.raises(error) as caught:
            await run.respond(*await approved(run))
        assert caught.value.problem == code
        assert len(await client.runs()) == 1


# B70 ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [2, 3, 4, 5])
async def test_a_pause_is_whole_wherever_the_stream_was_cut(face, journal, blocks):
    """B70: cut before, between and after the events that ask; the pending set is complete, with ids, and answered once by id."""
    server, args = paused(legs=[Leg(cut=(blocks, 0), how="reset")])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        outcome = await run.wait()
        assert [action.id for action in outcome.required_actions] == ["act_1", "act_2"]
        assert [action.id for action in (await run.view()).required_actions] == ["act_1", "act_2"]
        await run.respond(*[action.approve() for action in outcome.required_actions])
    assert len(server.runs) == 2


async def test_a_pause_can_be_answered_by_its_id_alone(face, journal):
    """B70: joined after the fact, without one event read: what is pending comes from the status."""
    server, args = paused()
    run = server.create("elsewhere")
    async with face.client(journal=journal, **args) as client:
        handle = client.attach(run.id)
        with pytest.raises(errors.ActionsUnanswered) as caught:
            await handle.respond()
        assert "2 actions; 'act_1'" in str(caught.value)
        assert server.wire.attaches() == []


# promise 12 in passing: the release ------------------------------------------------------------------------------------------


async def test_a_change_of_release_is_in_the_outcome_and_told_to_the_observer(face, journal):
    facts = Facts()
    _, args = in_memory(story=[Beat(), Beat(do="release", data="r2"), Beat(do="end", data="ok")])
    async with face.client(journal=journal, observer=facts, **args) as client:
        run = await client.start("work", key="k")
        outcome = await run.wait()
    assert outcome.release == "r2"
    assert [fact.detail for fact in facts.told if fact.name == "release"] == ["r2"]
    async with face.client(journal=journal, **args) as client:
        assert (await client.attach(run.id).wait()).release == "r2"


async def test_two_that_answer_at_once_in_one_journal_make_one_run(face, journal):
    """Different handles, the same answers, at the same time."""
    server, args = paused()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        answers = await approved(run)
        both = [face.beside(lambda: client.attach(run.id).respond(*answers)) for _ in range(2)]
        made = [await each.result() for each in both]
    assert {each.id for each in made} == {"run_2"}
    assert len(server.runs) == 2
