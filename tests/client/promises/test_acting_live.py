"""The three recoveries against the reference server: pauses are answered once, cancels tell the truth, effects can be asked for."""

import pytest

from client_stage import Facts, collected
from reattach import Status, errors
from reattach_mockserver.live import LiveServer
from reattach_mockserver.scenarios.parse import loads_script

pytestmark = pytest.mark.anyio

SCENARIOS = {
    "refund": """
clock: virtual
steps:
  - {say: "I look. ", split: whole}
  - ask:
      - {id: act_1, kind: approval, tool: refund, arguments: {cents: 999}, thread: billing, operation_id: op_7}
      - {id: act_2, kind: client_tool, tool: clock}
    approved: [{say: "Refunded.", split: whole}, {end: completed, result: {refunded: true}}]
    rejected: [{say: "Then not.", split: whole}, {end: completed, result: {refunded: false}}]
""",
    "twice": """
clock: virtual
steps:
  - ask: [{id: act_1, kind: approval, tool: first}]
    approved: [{say: "one. ", split: whole}]
  - ask: [{id: act_2, kind: approval, tool: second}]
    approved: [{say: "two.", split: whole}]
  - {end: completed, result: both}
""",
    "released": """
clock: virtual
steps:
  - {say: "old ", split: whole}
  - {server: {release: r2}}
  - {say: "new", split: whole}
""",
    "stale": """
steps:
  - ask: [{id: act_1, kind: approval, tool: deploy, release_in_ms: 0}]
    approved: [{say: "Deployed.", split: whole}]
    rejected: [{say: "Not.", split: whole}]
""",
    "hurry": """
steps:
  - ask: [{id: act_1, kind: approval, tool: deploy, expires_in_ms: 0}]
    approved: [{say: "Deployed.", split: whole}]
""",
    "effects": """
steps:
  - {tool: mail, id: c1, operation_id: OP-mail, takes_ms: 1, reversible: false, external: true, result: {sent: 1}}
  - {tool: draft, id: c2, operation_id: OP-draft, takes_ms: 1, result: {}}
  - {tool: charge, id: c3, operation_id: OP-charge, external: true, takes_ms: 3600000, result: {}}
""",
}


@pytest.fixture(scope="module")
def live():
    scripts = {
        f"{name}-{face}": loads_script(
            f"reattach: scenario/1\nname: {name}-{face}\n{text.replace('OP-', face + '-')}", name
        )
        for name, text in SCENARIOS.items()
        for face in ("async", "blocking")
    }
    with LiveServer(scripts=scripts) as server:
        yield server


def work(face, name):
    return {"scenario": f"{name}-{face.name}"}


async def answered(run, **by_kind):
    outcome = await run.wait()
    return [
        each.answer({"now": 12}) if each.kind == "client_tool" else by_kind.get("approval", type(each).approve)(each)
        for each in outcome.required_actions
    ]


@pytest.mark.parametrize(
    ("decide", "text", "refunded"), [("approve", "Refunded.", True), ("reject", "Then not.", False)]
)
async def test_a_pause_is_answered_and_goes_on(face, live, journal, decide, text, refunded):
    """Another run, in the same session; text, result, who answered: all of it is there."""
    async with face.client(live.url, journal) as client:
        run = await client.start(work(face, "refund"), key=f"{face.name}-{decide}")
        actions = (await run.wait()).required_actions
        assert [(each.id, each.kind, each.thread) for each in actions] == [
            ("act_1", "approval", "billing"),
            ("act_2", "client_tool", None),
        ]
        made = await run.respond(getattr(actions[0], decide)(), actions[1].answer({"now": 12}))
        assert made.id != run.id
        events = await collected(made)
        assert [event.type for event in events[:3]] == ["run.created", "action.resolved", "action.resolved"]
        assert "".join(event.text for event in events) == text
        assert await made.result() == {"refunded": refunded}
        assert made.session_id == run.session_id
        assert [each.id for each in await client.session_runs(run.session_id)] == [run.id, made.id]


async def test_a_job_of_two_pauses_has_three_runs_and_one_key(face, live, journal, tmp_path):
    """From another journal, too, the key means the newest."""
    key = f"{face.name}-twice"
    async with face.client(live.url, journal) as client:
        run = await client.start(work(face, "twice"), key=key)
        outcome = await run.wait()
        ids = [run.id]
        while outcome.required_actions:
            run = await run.respond(*[action.approve() for action in outcome.required_actions])
            outcome = await run.wait()
            ids.append(run.id)
        assert (outcome.status, outcome.result, len(set(ids))) == (Status.COMPLETED, "both", 3)
        assert (await client.start(work(face, "twice"), key=key)).id == ids[-1]
    async with face.client(live.url, tmp_path / "other.db") as client:
        run = await client.start(work(face, "twice"), key=key)
        assert run.id == ids[-1]
        assert await run.result() == "both"


async def test_two_clients_one_answers(face, live, journal, tmp_path):
    """B71. The other one sees it resolved; its own, other answer is refused and names the run that goes on."""
    async with face.client(live.url, journal) as first, face.client(live.url, tmp_path / "2.db") as second:
        mine = await first.start(work(face, "refund"), key=f"{face.name}-race")
        other = second.attach(mine.id)
        same = await answered(other)
        otherwise = await answered(other, approval=lambda action: action.reject("no"))
        made = await mine.respond(*await answered(mine))
        with pytest.raises(errors.ActionResolved, match=made.id):
            await other.respond(*otherwise)
        assert [run.id for run in await second.runs(unfinished=True)] == [made.id]
        assert (await other.respond(*same)).id == made.id
        assert await second.attach(made.id).result() == {"refunded": True}


async def test_an_approval_under_another_release_is_stale(face, live, journal):
    """Approving what has changed is refused, typed; rejecting it is not, or a new run leaves the pause."""
    async with face.client(live.url, journal) as client:
        run = await client.start(work(face, "stale"), key=f"{face.name}-stale")
        (action,) = (await run.wait()).required_actions
        with pytest.raises(errors.ApprovalStale) as caught:
            await run.respond(action.approve())
        assert caught.value.problem == "approval_stale"
        assert run.needs == "respond"


async def test_an_expired_action_can_only_be_left(face, live, journal):
    """Its answer is refused, typed; a new run in its session goes on."""
    async with face.client(live.url, journal) as client:
        run = await client.start(work(face, "hurry"), key=f"{face.name}-hurry", session_id=f"hurry-{face.name}")
        (action,) = (await run.wait()).required_actions
        assert action.expires_at is not None
        with pytest.raises(errors.ActionResolved) as caught:
            await run.respond(action.approve())
        assert caught.value.problem == "action_expired"
        assert run.needs == "nothing"
        again = await client.start(
            work(face, "released"), key=f"{face.name}-after-hurry", session_id=f"hurry-{face.name}"
        )
        assert (await again.wait()).status is Status.COMPLETED


async def test_a_new_run_lets_the_pause_lapse(face, live, journal):
    session = f"lapse-{face.name}"
    async with face.client(live.url, journal) as client:
        run = await client.start(work(face, "refund"), key=f"{face.name}-lapse", session_id=session)
        answers = await answered(run)
        await client.start(work(face, "released"), key=f"{face.name}-lapse-2", session_id=session)
        with pytest.raises(errors.ActionResolved):
            await run.respond(*answers)
        assert run.needs == "nothing"


async def test_a_change_of_release_is_surfaced(face, live, journal):
    facts = Facts()
    async with face.client(live.url, journal, observer=facts) as client:
        outcome = await (await client.start(work(face, "released"), key=f"{face.name}-release")).wait()
    assert outcome.release == "r2"
    assert [fact.detail for fact in facts.told if fact.name == "release"] == ["r2"]


async def test_a_cancelled_run_names_its_effects_and_the_authority_knows_them(face, live, journal):
    """External and local, committed, irreversible, in doubt; each can be asked for. The next turn sees the cancelled one."""
    session = f"effects-{face.name}"
    async with face.client(live.url, journal) as client:
        run = await client.start(work(face, "effects"), key=f"{face.name}-effects", session_id=session)
        with pytest.raises(errors.SessionBusy) as busy:
            await client.start(work(face, "released"), key=f"{face.name}-effects-2", session_id=session)
        assert busy.value.run_id == run.id
        async for event in run:
            if event.type == "tool.call" and event.data["tool"] == "charge":
                break
        outcome = await run.cancel()
        told = {op.id.split("-", 1)[1]: (op.tool, op.status, op.reversible, op.external) for op in outcome.operations}
        assert told == {
            "mail": ("mail", "committed", False, True),
            "draft": ("draft", "committed", True, False),
            "charge": ("charge", "unknown", None, True),
        }
        mail = await client.operation(f"{face.name}-mail")
        assert (mail.tool, mail.status, mail.reversible, mail.run_id) == ("mail", "committed", False, run.id)
        with pytest.raises(errors.NotFound):
            await client.operation("nobody")
        after = await client.start(work(face, "released"), key=f"{face.name}-effects-3", session_id=session)
        await after.wait()
        turns = await client.session_runs(session)
        assert [await turn.status() for turn in turns] == [Status.CANCELLED, Status.COMPLETED]


async def test_a_start_may_supersede_the_sessions_run(face, live, journal):
    session = f"supersede-{face.name}"
    async with face.client(live.url, journal) as client:
        old = await client.start({"scenario": "hello"}, key=f"{face.name}-other")
        await old.wait()
        first = await client.start(work(face, "effects"), key=f"{face.name}-s1", session_id=session)
        second = await client.start(
            work(face, "released"), key=f"{face.name}-s2", session_id=session, on_active="cancel"
        )
        assert (await first.wait()).status is Status.CANCELLED
        assert (await second.wait()).status is Status.COMPLETED


async def test_a_key_that_was_used_elsewhere_for_other_input_is_a_conflict(face, live, journal, tmp_path):
    """The other journal knows it before anything is sent; this one is told by the server, and keeps nothing."""
    async with face.client(live.url, tmp_path / "first.db") as client:
        await client.start(work(face, "released"), key=f"{face.name}-conflict")
    async with face.client(live.url, journal) as client:
        with pytest.raises(errors.KeyConflict, match="elsewhere, for another input"):
            await client.start(work(face, "refund"), key=f"{face.name}-conflict")
        assert await client.runs() == []
