"""Promise 8: honest gaps. Each reason under each choice, from the wire to the view after a restart."""

from __future__ import annotations

import pytest

from client_stage import collected, held, in_memory
from reattach import errors
from reattach.profiles import Native
from reattach.testing import Beat, Leg, Trip, VirtualClock, Wire
from reattach.testing.memory_server import URL

pytestmark = pytest.mark.anyio


class NoLog(Native):
    """The native protocol of a server that cannot send anything again."""

    replays = False


BEGIN = (Beat(), Beat(), Beat())
END = (Beat(after=200, data={"message_id": "m1", "text": "late "}), Beat(do="end", data="ok"))
CUT = Leg(cut=(3, 0), how="reset")
SILENT = Leg(delay=None)
STORIES = {
    "expired": {"story": [*BEGIN, Beat(after=5, do="trim", count=3), *END], "legs": [CUT, SILENT]},
    "epoch": {"story": [*BEGIN, Beat(after=5, do="rotate", count=1), *END], "legs": [CUT, SILENT]},
    "diverged": {"story": [*BEGIN, Beat(after=5, do="lose", count=3), Beat(), Beat(), *END], "legs": [CUT, SILENT]},
    "hole": {"story": [*BEGIN, *END], "legs": [CUT, Leg(skip=1), Leg(skip=1)]},
    "refused": {"story": [*BEGIN, *END], "legs": [CUT, Leg(refuse=400, code="cursor_malformed")]},
    "no_log": {"story": [*BEGIN, *END], "legs": [CUT]},
}
RAISED = {
    "expired": errors.CursorExpired,
    "epoch": errors.EpochChanged,
    "diverged": errors.EpochChanged,
    "hole": errors.GapUnfillable,
    "refused": errors.CursorRefused,
    "no_log": errors.GapUnfillable,
}


def staged(reason: str, **more):
    plans = STORIES[reason]
    server, args = in_memory(inline=True, story=list(plans["story"]), legs=list(plans["legs"]), **more)
    held(server, args)
    return server, {**args, "profile": NoLog() if reason == "no_log" else Native()}


@pytest.mark.parametrize("reason", STORIES)
async def test_with_raise_each_reason_has_its_error_and_nothing_is_changed(face, journal, reason: str) -> None:
    """Promise 8: the error names the gap; the journal keeps what it has, and no second run is made."""
    server, args = staged(reason)
    shown: list = []
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        with pytest.raises(RAISED[reason]) as caught:
            await collected(run, into=shown)
        assert caught.value.gap.reason == reason
        assert caught.value.gap.until is None
        assert len(server.wire.calls("POST", "/v1/runs")) == 1
        assert [event.gap for event in shown] == [None] * len(shown)


@pytest.mark.parametrize("reason", STORIES)
async def test_with_snapshot_the_run_goes_on_at_the_stated_boundary(face, journal, reason: str) -> None:
    """Promise 8: the gap takes its place among the events, holds the server's state, and what follows begins after its boundary."""
    server, args = staged(reason)
    async with face.client(journal=journal, **args, on_gap="snapshot") as client:
        run = await client.start("work", key="k")
        events = await collected(run)
        assert await run.result() == "ok"
    gaps = [event for event in events if event.gap is not None]
    assert {event.gap.reason for event in gaps} == {reason}
    last = events.index(gaps[-1])
    assert gaps[-1].gap.snapshot["cursor"] == gaps[-1].gap.until
    assert f"{server.run.epoch}.{events[last + 1].sequence - 1}" == gaps[-1].gap.until
    assert [event.sequence for event in events[last + 1 :]] == list(
        range(events[last + 1].sequence, server.run.last + 1)
    )


@pytest.mark.parametrize("reason", ["expired", "epoch", "diverged", "refused"])
async def test_with_continue_the_run_goes_on_at_the_oldest_event_kept(face, journal, reason: str) -> None:
    """Promise 8: a label, no state; found and followed on one and the same connection."""
    server, args = staged(reason)
    async with face.client(journal=journal, **args, on_gap="continue") as client:
        run = await client.start("work", key="k")
        events = await collected(run)
        assert await run.result() == "ok"
    (gap,) = [event for event in events if event.gap is not None]
    assert (gap.gap.reason, gap.gap.snapshot) == (reason, None)
    after = events[events.index(gap) + 1 :]
    assert [event.sequence for event in after] == list(range(server.run.first, server.run.last + 1))
    asked = [sent.after for sent in server.wire.attaches()]
    assert asked.count("earliest") == 1
    assert asked[-1] == "earliest", "it was not asked once more after the boundary"


async def test_a_hole_cannot_be_passed_over_by_going_on_at_the_oldest_event(face, journal) -> None:
    """Promise 8: the oldest event kept lies before the hole; so it is said, not skipped."""
    _, args = staged("hole")
    async with face.client(journal=journal, **args, on_gap="continue") as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.GapUnfillable):
            await collected(run)


async def test_a_server_without_a_log_is_labelled_once_an_attach_when_only_the_label_is_wanted(face, journal) -> None:
    """Promise 8: with "continue" nothing is fetched that cannot be had."""
    server, args = staged("no_log")
    async with face.client(journal=journal, **args, on_gap="continue") as client:
        run = await client.start("work", key="k")
        events = await collected(run)
        assert [event.gap.reason for event in events if event.gap] == ["no_log", "no_log"]
        assert server.wire.calls("GET", "/v1/runs/run_1/snapshot") == []


@pytest.mark.parametrize("reason", STORIES)
async def test_the_gap_is_in_the_journal_and_in_the_view_after_a_restart(face, journal, reason: str) -> None:
    """Promise 8: a new process on the same journal sees the same gap at the same place, without a network."""
    _, args = staged(reason)
    async with face.client(journal=journal, **args, on_gap="snapshot") as client:
        run = await client.start("work", key="k")
        live = [(event.id, event.gap and event.gap.until) for event in await collected(run)]
        before = (await run.view()).gaps
    clock = VirtualClock(autojump=True)
    async with face.client(URL, journal, transport=Wire(clock=clock), on_gap="snapshot") as client:
        again = client.attach("run_1", after="beginning")
        assert [(event.id, event.gap and event.gap.until) for event in await collected(again)] == live
        view = await client.attach("run_1").view()
    assert view.gaps == before
    assert view.gaps
    assert {gap.reason for gap in view.gaps} == {reason}


async def test_tiny_retention_ends_no_run(face, journal) -> None:
    """Promise 8: a server that keeps two events trims while we attach; "continue" names each gap and reaches the end."""
    story = []
    for _ in range(30):
        story += [Beat(after=0.5), Beat(do="trim", count=3)]
    server, args = in_memory(
        inline=True,
        story=[*BEGIN, *story, Beat(do="end", data="ok")],
        legs=[Leg(cut=(2, 0), how="reset", delay=1.0)] * 12,
    )
    held(server, args)
    async with face.client(journal=journal, **args, on_gap="continue") as client:
        run = await client.start("work", key="k")
        events = await collected(run)
        assert await run.result() == "ok"
    assert [event for event in events if event.gap], "there was something to name"
    assert server.wire.most_streams == 1


async def test_an_end_that_is_told_and_never_served_becomes_a_gap(face, journal) -> None:
    """Promises 8 and 9: ten attaches since the status told it brought nothing of it; then it is a hole, and no endless loop."""
    held = [Leg(cut=(1, 0), how="fin", skip=99)] * 40
    server, args = in_memory(inline=True, beats=3, legs=[CUT, *held])
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        with pytest.raises(errors.GapUnfillable) as caught:
            await collected(run)
        assert caught.value.gap.reason == "hole"
    assert len(server.wire.attaches()) < 20


async def test_that_gap_is_filled_by_the_servers_state_where_one_is_wanted(face, journal) -> None:
    """Promise 8: and the run ends by its status."""
    _, args = in_memory(inline=True, beats=3, legs=[CUT, *[Leg(cut=(1, 0), how="fin", skip=99)] * 40])
    async with face.client(journal=journal, **args, on_gap="snapshot") as client:
        run = await client.start("work", key="k")
        events = await collected(run)
        assert (events[-1].gap.reason, events[-1].gap.missing) == ("hole", 3)
        assert (await run.wait()).evidence == "status"


async def test_a_boundary_that_is_busy_is_asked_for_again(face, journal) -> None:
    """Promise 8: a snapshot that cannot be had now is no reason to go on without one."""
    server, args = staged("expired", snapshots=[Trip(refuse=503, retry_after=7.0), Trip(lost="after")])
    async with face.client(journal=journal, **args, on_gap="snapshot") as client:
        run = await client.start("work", key="k")
        await collected(run)
    first, second, *_ = [sent.at for sent in server.wire.calls("GET", "/v1/runs/run_1/snapshot")]
    assert second - first >= 7.0


BARREN = {
    "a 200 with nothing in it": Leg(attached=False, cut=(1, 0), how="fin"),
    "a reset behind the server's first sign": Leg(cut=(1, 0), how="reset"),
}


@pytest.mark.parametrize("leg", BARREN.values(), ids=BARREN)
async def test_no_event_is_called_lost_because_a_path_brings_nothing(face, journal, leg: Leg) -> None:
    """Promise 8: found by the simulation: ten such answers beside a settled status were told as a hole, and the run was given up.

    They prove that the path is bad, and nothing of the log: the eleventh and later attaches brought all that there was.
    """
    server, args = in_memory(inline=True, story=[Beat(), Beat(), Beat(do="end", data="ok")], legs=[CUT, *[leg] * 14])
    held(server, args)
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        events = await collected(run)
        assert await run.result() == "ok"
    assert [event.sequence for event in events] == list(range(1, server.run.last + 1))
    assert len(server.wire.attaches()) == 16
