"""Promises 5, 6, 7 and 9: reconnecting creates no work, an end needs evidence, the poll goes on, polite for ever."""

import pytest

import reattach
from client_stage import collected, in_memory, sequences
from reattach import Policy, errors
from reattach.testing import Beat, Leg, Trip

pytestmark = pytest.mark.anyio


async def test_reconnecting_polling_detaching_and_closing_create_no_work(face, journal):
    server, args = in_memory(legs=[Leg(cut=(block, 0), how="reset") for block in (2, 1, 2, 1)])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        await collected(run, 1)
        await run.detach()
        await collected(run)
        await run.status()
    async with face.client(journal=journal, **args) as client:
        await collected(client.attach(run.id))
    assert {(sent.method, sent.path) for sent in server.wire.requests if sent.method != "GET"} == {("POST", "/v1/runs")}
    assert len(server.wire.calls("POST", "/v1/runs")) == 1


async def test_cancel_is_a_call_of_its_own_and_tells_the_truth(face):
    server, args = in_memory(story=[Beat()], jumps=False)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        outcome = await run.cancel()
        assert (outcome.status, outcome.evidence) == ("cancelled", "event")
        with pytest.raises(errors.RunCancelled, match="was cancelled") as caught:
            await run.result()
        assert caught.value.outcome.status == "cancelled"
        assert (await run.cancel()).status == "cancelled"
    assert len(server.wire.calls("POST", "/v1/runs/run_1/cancel")) == 1


async def test_a_clean_end_of_stream_is_no_end_of_the_run(face):
    _, args = in_memory(legs=[Leg(cut=(3, 0), how="fin"), Leg(cut=(1, 0), how="fin"), Leg(refuse=200), Leg(refuse=204)])
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        assert sequences(await collected(run)) == [1, 2, 3, 4, 5]
        assert (await run.wait()).evidence == "event"


async def test_the_poll_finds_the_end_whose_event_never_came(face):
    """The stream stalls at the committed head; the status is evidence, and it is on disk before it is told."""
    _, args = in_memory(
        story=[Beat(), Beat(after=1, do="end", data="ok")], legs=[Leg(cut=(4, 0), how="stall"), *[Leg(delay=None)] * 50]
    )
    async with face.client(journal=":memory:", **args, policy=Policy(give_up_after=None)) as client:
        run = await client.start("work", key="k")
        events = await collected(run)
        assert sequences(events) == [1, 2, 3]
        assert await run.result() == "ok"


async def test_the_poll_never_finishes_early(face):
    """Settled by status, but the tail is not committed: it is fetched first."""
    _, args = in_memory(legs=[Leg(cut=(2, 0), how="stall"), Leg(lost=True), Leg(refuse=503)])
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        assert sequences(await collected(run)) == [1, 2, 3, 4, 5]


async def test_a_journal_that_holds_the_end_needs_no_network(face, journal):
    server, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        await (await client.start("work", key="k")).wait()
    before = len(server.wire.requests)
    async with face.client(journal=journal, **args) as client:
        run = client.attach("run_1")
        assert sequences(await collected(run)) == [1, 2, 3, 4, 5]
        assert await run.result() == "ok"
        assert (await run.view()).status == "completed"
        assert [view.text async for view in run.views()][-1] == "word 1 word 2 word 3 "
    assert len(server.wire.requests) == before


async def test_a_failed_run_ends_the_loop_wait_tells_and_result_raises(face, live, journal):
    async with face.client(live.url, journal) as client:
        run = await client.start({"scenario": "failed"}, key=f"failed-{face.name}")
        events = await collected(run)
        assert events[-1].kind == "end"
        outcome = await run.wait()
        assert outcome.status == "failed"
        with pytest.raises(errors.RunFailed) as caught:
            await run.result()
        assert caught.value.outcome == outcome
        assert caught.value.key == f"failed-{face.name}"


async def test_a_pause_ends_the_loop_and_needs_an_answer(face, live, journal):
    async with face.client(live.url, journal) as client:
        run = await client.start({"scenario": "approval"}, key=f"approval-{face.name}")
        events = await collected(run)
        assert events[-1].type == "run.paused"
        outcome = await run.wait()
        assert outcome.status == "requires_action"
        assert outcome.required_actions
        with pytest.raises(errors.ActionRequired, match="waits for"):
            await run.result()
        assert run.needs == "respond"
        assert (await run.view()).required_actions == outcome.required_actions


async def test_an_unreachable_server_is_given_up_by_name_after_the_budget(face):
    server, args = in_memory(legs=[Leg(lost=True)] * 500, statuses=[Trip(lost="before")] * 500)
    server.create()
    async with face.client(journal=":memory:", **args) as client:
        run = client.attach("run_1")
        with pytest.raises(errors.ReconnectExhausted, match="could not be reached for 600 s") as caught:
            await collected(run)
    assert "connection reset by peer" in str(caught.value)
    assert 10 < len(server.wire.attaches()) < 60  # no storm in ten minutes
    assert caught.value.tried == f"{len(server.wire.attaches())} attempts"


async def test_a_retry_after_is_a_floor(face):
    server, args = in_memory(legs=[Leg(refuse=503, code="overloaded", retry_after=50.0)])
    async with face.client(journal=":memory:", **args) as client:
        await collected(await client.start("work", key="k"))
    first, second = server.wire.attaches()
    assert second.at - first.at >= 50


async def test_the_token_is_asked_for_again_once_per_401(face):
    tokens = iter(["old", "old", "new", "new", "new", "new"])
    asked = []

    def token():
        asked.append(next(tokens, "new"))
        return asked[-1]

    server, args = in_memory(creates=[], legs=[Leg(refuse=401, code="unauthenticated")])
    async with face.client(journal=":memory:", **args, token=token) as client:
        run = await client.start("work", key="k")
        assert sequences(await collected(run)) == [1, 2, 3, 4, 5]
    assert len(asked) == len(server.wire.requests)


async def test_a_status_read_asks_for_the_token_again_too(face):
    server, args = in_memory(statuses=[Trip(refuse=401), Trip(), Trip(refuse=401), Trip(refuse=401)])
    server.create()
    async with face.client(journal=":memory:", **args) as client:
        run = client.attach("run_1")
        assert await run.status() == "completed"
        with pytest.raises(errors.NotAuthorized):
            await run.status()


async def test_a_second_401_is_not_authorized(face):
    server, args = in_memory(legs=[Leg(refuse=401)] * 9, statuses=[Trip(refuse=401)] * 9)
    server.create()
    async with face.client(journal=":memory:", **args) as client:
        with pytest.raises(
            errors.NotAuthorized, match=r"refused the token for run 'run_1' twice \(401; .*Renew the token"
        ):
            await collected(client.attach("run_1"))
    assert len(server.wire.attaches()) <= 2


async def test_a_token_function_that_raises_is_named_and_not_swallowed(face):
    def token():
        raise RuntimeError("the vault is sealed")

    server, args = in_memory()
    async with face.client(journal=":memory:", **args, token=token) as client:
        with pytest.raises(errors.LocalProtocolError, match="the vault is sealed"):
            await client.start("work", key="k")
        with pytest.raises(errors.LocalProtocolError, match="the vault is sealed"):
            await collected(client.attach("run_1"))
    assert server.wire.requests == []


async def test_no_gap_is_filled_in_silence(face):
    """The log was trimmed beyond the cursor: CursorExpired with the numbers, and a snapshot only where it was chosen."""
    server, args = in_memory(story=[Beat(), Beat()], jumps=False)
    async with face.client(journal=":memory:", **args) as client:
        async with await client.start("work", key="k") as run:
            assert sequences(await collected(run, 3)) == [1, 2, 3]
        for beat in (Beat(), Beat(), Beat(), Beat(do="trim", count=5), Beat(do="end")):
            server.perform(server.run, beat)
        with pytest.raises(errors.CursorExpired) as caught:
            await collected(run)
        assert caught.value.cursor == "e1.3"
        assert (caught.value.gap.reason, caught.value.gap.missing) == ("expired", 2)
        assert "keeps events from 6 on; 4 to 5 (2 events) cannot be had" in str(caught.value)
        again = client.attach(run.id, on_gap="snapshot")
        (gap,) = [event.gap for event in await collected(again) if event.gap]
        assert (gap.after, gap.snapshot is not None) == ("e1.3", True)
        assert (await again.wait()).gaps == (gap,)


async def test_a_snapshot_is_adopted_while_events_are_in_flight(face):
    """The boundary is asked for when the last commit returns: from the writer's answer, in both loops."""
    story = [Beat(), Beat(after=1, do="rotate", count=1), Beat(), Beat(do="end")]
    for _ in range(3):
        _, args = in_memory(story=story)
        # Time does not wait for the writer's thread here: without a budget it may run as it likes.
        patient = reattach.Policy(give_up_after=10**9)
        async with face.client(journal=":memory:", **args, on_gap="snapshot", policy=patient) as client:
            run = await client.start("work", key="k")
            await collected(run)
            outcome = await run.wait()
        assert outcome.status == "completed"
        assert [gap.reason for gap in outcome.gaps] in (["epoch"], [])
