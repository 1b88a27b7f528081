"""Cancelling is a call of its own: it tells the truth, and what is not undone; sessions go on; effects can be asked for."""

import pytest

from client_stage import collected, in_memory
from reattach import Status, errors
from reattach.testing import Beat, Trip
from reattach.testing.answers import told

pytestmark = pytest.mark.anyio

CALLS = [
    Beat(type="tool.call", data={"call_id": "c1", "operation_id": "op_1", "tool": "mail", "arguments": {}}),
    Beat(type="tool.result", data={"call_id": "c1", "operation_id": "op_1", "result": {"ok": True}}),
    Beat(type="tool.call", data={"call_id": "c2", "operation_id": "op_2", "tool": "charge", "arguments": {}}),
]
NEVER = Beat(after=1e9)
INVENTORY = {"known": [], "unknown": ["op_2"], "irreversible": ["op_1"], "external": ["op_2", "op_3"]}


async def test_a_cancelled_run_tells_its_operations_external_and_local(face, journal):
    """Which took effect, which are in doubt, which cannot be undone; with the tools' names. Also when it is asked for again."""
    _, args = in_memory(story=[*CALLS, NEVER], inventory=INVENTORY, jumps=False)
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        outcome = await run.cancel()
        again = await client.attach(run.id).cancel()
    assert outcome.status is Status.CANCELLED
    told = {op.id: (op.tool, op.status, op.reversible, op.external) for op in outcome.operations}
    assert told == {
        "op_1": ("mail", "committed", False, False),
        "op_2": ("charge", "unknown", None, True),
        "op_3": (None, "unknown", None, True),
    }
    assert {op.run_id for op in outcome.operations} == {run.id}
    assert again == outcome
    async with face.client(journal=journal, **args) as client:
        assert (await client.attach(run.id).wait()).operations == outcome.operations


async def test_without_an_inventory_the_calls_of_tools_are_one(face, journal):
    """An older server tells none: a call with a result took effect, one without is in doubt."""
    _, args = in_memory(story=[*CALLS, NEVER], jumps=False)
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        outcome = await run.cancel()
    assert [(op.id, op.tool, op.status) for op in outcome.operations] == [
        ("op_1", "mail", "committed"),
        ("op_2", "charge", "unknown"),
    ]


async def test_a_tool_that_answered_with_an_error_is_in_doubt(face, journal):
    """An error is the tool's word, not the authority's: the effect may have happened before it."""
    failing = Beat(type="tool.result", data={"call_id": "c2", "operation_id": "op_2", "error": {"code": "timeout"}})
    _, args = in_memory(story=[*CALLS, failing, Beat(do="end")])
    async with face.client(journal=journal, **args) as client:
        outcome = await (await client.start("work", key="k")).wait()
    assert [(op.id, op.status) for op in outcome.operations] == [("op_1", "committed"), ("op_2", "unknown")]


async def test_cancelling_may_come_too_late_and_says_so(face, journal):
    """The truth is what the run became first."""
    server, args = in_memory(jumps=False)
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        assert (await run.cancel()).status is Status.COMPLETED
        assert (await run.cancel()).status is Status.COMPLETED
    assert len(server.wire.calls("POST", f"/v1/runs/{run.id}/cancel")) == 1


async def test_a_cancel_that_nobody_answers_ends_in_its_time(face, journal):
    """`timeout` is of the whole call: also a request without an answer ends by it, and may be made again."""
    _, args = in_memory(story=[NEVER], cancels=[Trip(delay=None)], inline=True)
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.WaitTimeout, match=r"has not answered a cancel within 5 s\. It may"):
            await run.cancel(timeout=5)
        assert (await run.cancel(timeout=1e6)).status is Status.CANCELLED


async def test_cancelling_a_pause_leaves_it(face, journal):
    """It stays paused, for ever; its actions can be answered no more, and it needs nothing."""
    server, args = in_memory(story=[Beat(do="pause", data=[{"id": "act_1"}])])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        (action,) = (await run.wait()).required_actions
        outcome = await run.cancel()
        assert (outcome.status, outcome.required_actions[0].resolution) == (Status.REQUIRES_ACTION, "cancelled")
        assert run.needs == "nothing"
        assert await client.runs(unfinished=True) == []
        with pytest.raises(errors.ActionResolved):
            await run.respond(action.approve())
    assert len(server.runs) == 1


# sessions -----------------------------------------------------------------------------------------------------------------


async def test_a_session_that_is_busy_names_its_run(face, journal):
    """Nothing was created, and the key is free: another input may use it."""
    server, args = in_memory(story=[NEVER], jumps=False)
    async with face.client(journal=journal, **args) as client:
        first = await client.start("one", key="k1", session_id="s")
        with pytest.raises(
            errors.SessionBusy, match=f"the session has run '{first.id}', which has not settled"
        ) as caught:
            await client.start("two", key="k2", session_id="s")
        assert (caught.value.run_id, caught.value.key) == (first.id, "k2")
        assert (await client.start("three", key="k2")).id == "run_2"
    assert len(server.runs) == 2


async def test_a_start_may_end_the_sessions_run(face, journal):
    """`on_active="cancel"`: the old one is cancelled first, and its handle says so."""
    server, args = in_memory(story=[NEVER], jumps=False)
    async with face.client(journal=journal, **args) as client:
        first = await client.start("one", key="k1", session_id="s")
        second = await client.start("two", key="k2", session_id="s", on_active="cancel")
        assert (await first.wait()).status is Status.CANCELLED
        assert await second.status() is Status.RUNNING
    assert server.runs[first.id].log[-1].holds({"reason": "superseded", "operations": {}})


async def test_the_next_turn_sees_the_cancelled_one(face, journal):
    """A session's runs, oldest first, with what became of them; those of others, too. Looking writes nothing."""
    server, args = in_memory(story=[NEVER], jumps=False)
    async with face.client(journal=journal, **args) as client:
        first = await client.start("one", key="k1", session_id="s")
        await first.cancel()
        second = await client.start("two", key="k2", session_id="s")
        await second.cancel()
        server.create("elsewhere", b'{"session_id":"s"}')
        found = await client.session_runs("s")
        assert [(run.id, run.key, run.session_id) for run in found] == [
            (first.id, "k1", "s"),
            (second.id, "k2", "s"),
            ("run_3", None, "s"),
        ]
        assert [await run.status() for run in found[:2]] == [Status.CANCELLED, Status.CANCELLED]
        assert len(await client.runs()) == 2
        assert await found[2].status() is Status.RUNNING


async def test_a_run_that_the_session_told_of_can_be_followed(face, journal):
    """The journal learns of it then."""
    server, args = in_memory()
    server.create("elsewhere", b'{"session_id":"s"}')
    async with face.client(journal=journal, **args) as client:
        (run,) = await client.session_runs("s")
        assert await client.runs() == []
        assert len(await collected(run)) == 5
        assert [each.id for each in await client.runs()] == [run.id]
        assert len(await collected(client.attach(run, after="beginning"))) == 5


async def test_a_long_session_is_read_page_by_page(face, journal):
    server, args = in_memory()
    for number in range(250):
        server.create(f"k{number}", b'{"session_id":"s"}')
    async with face.client(journal=journal, **args) as client:
        found = await client.session_runs("s")
    assert [run.id for run in found] == list(server.runs)


async def test_a_server_that_turns_in_circles_ends(face, journal):
    """Each page names another one to read, and brings nothing new."""
    server, args = in_memory()
    server.create("k", b'{"session_id":"s"}')
    server.acting.session = lambda session_id, after: told({"runs": [server.run.told()], "next": "run_1"})
    async with face.client(journal=journal, **args) as client:
        assert [run.id for run in await client.session_runs("s")] == ["run_1"]
    assert len(server.wire.requests) == 2


# operations ---------------------------------------------------------------------------------------------------------------


async def test_an_operation_is_asked_of_the_authority(face, journal):
    server, args = in_memory()
    server.acting.operations["op 1/x"] = {
        "tool": "charge",
        "status": "committed",
        "reversible": False,
        "run_id": "run_1",
        "result": {"cents": 999},
    }
    server.acting.operations["odd"] = {"tool": 7, "status": "new word", "reversible": "perhaps"}
    async with face.client(journal=journal, **args) as client:
        operation = await client.operation("op 1/x")
        odd = await client.operation("odd")
    told = (operation.id, operation.tool, operation.status, operation.reversible, operation.run_id, operation.result)
    assert told == ("op 1/x", "charge", "committed", False, "run_1", {"cents": 999})
    assert (odd.tool, odd.status, odd.reversible) == (None, "unknown", None)


@pytest.mark.parametrize("ask", ["operation", "session_runs"])
@pytest.mark.parametrize(
    ("trip", "error", "words"),
    [
        (Trip(), errors.NotFound, "knows no {what} '404'"),
        (Trip(refuse=403, code="forbidden"), errors.NotAuthorized, "refused the token when asked about {what} '404'"),
        (Trip(refuse=503, code="overloaded"), errors.AttachError, "did not answer about {what} '404' \\(3 attempts"),
        (Trip(lost="after"), errors.AttachError, "did not answer about {what} '404'"),
        (Trip(refuse=302), errors.RemoteProtocolError, "what is not the protocol"),
        (Trip(refuse=400, code="invalid_request"), errors.AttachError, "does not answer about {what} '404'"),
    ],
)
async def test_a_question_that_is_not_answered_says_why(face, ask, trip, error, words):
    _, args = in_memory(statuses=[trip] * 3)
    what = {"operation": "operation", "session_runs": "session"}[ask]
    async with face.client(journal=":memory:", **args) as client:
        with pytest.raises(error, match=words.format(what=what)):
            await getattr(client, ask)("404")


@pytest.mark.parametrize("ask", ["operation", "session_runs"])
@pytest.mark.parametrize("value", ["", None, ".", "\ud83d", 7])
async def test_a_question_without_an_id_is_refused(face, ask, value):
    server, args = in_memory()
    async with face.client(journal=":memory:", **args) as client:
        with pytest.raises(errors.UsageError):
            await getattr(client, ask)(value)
    assert server.wire.requests == []
