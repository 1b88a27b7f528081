"""The law of event logs (`logs/base.py`), run on every implementation."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reattach_mockserver.event import Entry
from reattach_mockserver.logs.base import (
    Effect,
    EventLog,
    RunRecord,
    RunSettled,
    SessionBusy,
    TooManyRuns,
    WriterLost,
)
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.moment import moment

pytestmark = pytest.mark.anyio

ALL_LOGS: dict[str, Callable[[Path], EventLog]] = {
    "memory": lambda folder: MemoryLog(),
    "sqlite": lambda folder: SqliteLog(folder / "log.db"),
}
ROOM = 1 << 20


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=ALL_LOGS)
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    opened = ALL_LOGS[request.param](tmp_path)
    await opened.open()
    yield opened
    await opened.close()


def a_run(name: str = "a", *, key: str | None = None, principal: str = "p", session: str | None = None) -> RunRecord:
    return RunRecord(
        id=f"run_{name}",
        number=0,
        principal=principal,
        key=key or f"key-{name}",
        digest="d",
        session_id=session or f"ses_{name}",
        script="hello",
        created_at=moment(0),
        metadata=None,
        token="",
    )


def an_entry(name: str, *, status: str | None = None, at: int = 0, time: int = 0, run: str = "a") -> Entry:
    return Entry(
        id=f"evt_{run}_{name}",
        step=name,
        type="note",
        time=moment(time),
        at=at,
        data=f'{{"name":"{name}"}}',
        status=status,
        outcome="{}" if status else None,
    )


async def created(log: EventLog, name: str = "a", **others: str) -> RunRecord:
    run, made = await log.create(a_run(name, **others), [an_entry("created", run=name)])
    assert made
    return run


def sequences(log: EventLog, run_id: str = "run_a") -> list[int]:
    return [event.sequence for event in log.read(run_id, 0, 10_000, ROOM)]


async def test_a_run_its_key_its_session_and_its_first_event_come_together(log: EventLog) -> None:
    run = await created(log)
    assert log.run("run_a") == run == log.by_key("p", "key-a")
    assert (run.last_sequence, run.status, run.number) == (1, "queued", 1)
    session = log.session("p", "ses_a")
    assert session is not None
    assert session.last_run_id == "run_a"
    assert sequences(log) == [1]


async def test_a_known_key_returns_its_run_and_writes_nothing(log: EventLog) -> None:
    """B43: the key is compared and kept by the log itself, in the transaction that creates."""
    first = await created(log)
    again, made = await log.create(a_run("b", key="key-a"), [an_entry("created", run="b")])
    assert (again, made) == (first, False)
    assert log.run("run_b") is None
    assert log.counts().runs == 1


async def test_creates_of_one_key_at_the_same_time_make_one_run(log: EventLog) -> None:
    """B43: however many ask at once, one of them makes the run and all get it."""
    answers = await asyncio.gather(
        *(log.create(a_run(f"r{n}", key="one"), [an_entry("created", run=f"r{n}")]) for n in range(20))
    )
    assert sum(made for _, made in answers) == 1
    assert len({run.id for run, _ in answers}) == 1
    assert log.counts().runs == 1


async def test_a_key_belongs_to_its_principal(log: EventLog) -> None:
    mine = await created(log, "a", key="k", principal="p")
    theirs = await created(log, "b", key="k", principal="q")
    assert log.by_key("p", "k") == mine
    assert log.by_key("q", "k") == theirs


async def test_sequences_have_no_holes_under_parallel_producers(log: EventLog) -> None:
    """One order, from 1, whoever asks when; a reader never sees a sequence before all below it."""
    run = await created(log)
    done = asyncio.Event()
    seen: list[list[int]] = []

    async def look() -> None:
        while not done.is_set():
            seen.append(sequences(log))
            await asyncio.sleep(0)

    async def produce(name: str) -> None:
        for number in range(25):
            await log.append("run_a", run.writer, [an_entry(f"{name}{number}")])

    looking = asyncio.create_task(look())
    await asyncio.gather(*(produce(name) for name in "bcdefgh"))
    done.set()
    await looking
    assert sequences(log) == list(range(1, 2 + 7 * 25))
    assert all(view == list(range(1, len(view) + 1)) for view in seen)


async def test_every_event_names_the_one_before_it(log: EventLog) -> None:
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("b"), an_entry("c")])
    events = [json.loads(event.body) for event in log.read("run_a", 0, 10, ROOM)]
    assert [event["prev_id"] for event in events] == [None, "evt_a_created", "evt_a_b"]
    assert [event["id"] for event in events] == ["evt_a_created", "evt_a_b", "evt_a_c"]
    assert log.event_id("run_a", 2) == "evt_a_b"
    assert log.event_id("run_a", 0) is None
    assert log.event_id("run_a", 4) is None


async def test_an_events_bytes_are_made_once(log: EventLog) -> None:
    """What the append returned, and every later read, are the same bytes."""
    run = await created(log)
    _, stored = await log.append("run_a", run.writer, [an_entry("b")])
    assert log.read("run_a", 1, 10, ROOM) == stored == log.read("run_a", 1, 10, ROOM)


async def test_an_append_is_idempotent_by_event_id(log: EventLog) -> None:
    """RS-85: an append whose answer was lost adds nothing when it is sent again, wholly or in part."""
    run = await created(log)
    _, first = await log.append("run_a", run.writer, [an_entry("b")])
    _, second = await log.append("run_a", run.writer, [an_entry("b"), an_entry("c")])
    assert second[0] == first[0]
    assert sequences(log) == [1, 2, 3]


async def test_the_settling_event_too_may_be_appended_again(log: EventLog) -> None:
    run = await created(log)
    end = an_entry("end", status="completed")
    _, first = await log.append("run_a", run.writer, [end])
    again, second = await log.append("run_a", run.writer, [end])
    assert first == second
    assert again.status == "completed"
    assert sequences(log) == [1, 2]


async def test_nothing_is_appended_after_the_settling_event(log: EventLog) -> None:
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("end", status="failed")])
    with pytest.raises(RunSettled):
        await log.append("run_a", run.writer, [an_entry("late")])
    assert sequences(log) == [1, 2]


async def test_two_settling_events_at_once_leave_one(log: EventLog) -> None:
    """RS-54: completion against cancel has one outcome."""
    run = await created(log)
    ends = [an_entry("done", status="completed"), an_entry("gone", status="cancelled")]
    answers = await asyncio.gather(*(log.append("run_a", run.writer, [end]) for end in ends), return_exceptions=True)
    assert sum(isinstance(answer, RunSettled) for answer in answers) == 1
    assert sequences(log) == [1, 2]


async def test_a_refused_append_writes_none_of_its_entries(log: EventLog) -> None:
    run = await created(log)
    with pytest.raises(RunSettled):
        await log.append("run_a", run.writer, [an_entry("end", status="completed"), an_entry("late")])
    assert sequences(log) == [1]
    assert log.run("run_a") == run


async def test_a_writer_that_was_taken_over_appends_nothing_more(log: EventLog) -> None:
    """RS-86: the token of a paused former writer is worth nothing."""
    run = await created(log)
    taken = await log.take_over("run_a")
    with pytest.raises(WriterLost):
        await log.append("run_a", run.writer, [an_entry("zombie")])
    await log.append("run_a", taken.writer, [an_entry("b")])
    assert [event.id for event in log.read("run_a", 1, 10, ROOM)] == ["evt_a_b"]


async def test_the_status_changes_with_its_event(log: EventLog) -> None:
    """Rule 6: whoever read the settling event reads a settled status."""
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("started", status="running")])
    assert log.run("run_a").status == "running"  # type: ignore[union-attr]  # the run was created above
    after, _ = await log.append("run_a", run.writer, [an_entry("end", status="completed", time=5)])
    assert log.run("run_a") == after
    assert (after.status, after.ended_at, after.last_sequence) == ("completed", moment(5), 3)


async def test_time_never_goes_back(log: EventLog) -> None:
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("b", time=9_000), an_entry("c", time=1_000)])
    times = [json.loads(event.body)["time"] for event in log.read("run_a", 0, 10, ROOM)]
    assert times == [moment(0), moment(9_000), moment(9_000)]


async def test_a_page_stops_at_its_limits(log: EventLog) -> None:
    """By number, and by bytes but for the first event, which always comes."""
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry(str(n)) for n in range(10)])
    assert [event.sequence for event in log.read("run_a", 3, 4, ROOM)] == [4, 5, 6, 7]
    assert [event.sequence for event in log.read("run_a", 3, 4, 1)] == [4]
    assert log.read("run_a", 11, 4, ROOM) == ()


async def test_runs_do_not_see_each_others_events(log: EventLog) -> None:
    """B56: no read crosses from one run into the next, at either end."""
    a, b, c = [await created(log, name) for name in "abc"]
    for run in (a, b, c):
        await log.append(run.id, run.writer, [an_entry("x", run=run.id[-1])])
    assert [event.id for event in log.read("run_b", 0, 100, ROOM)] == ["evt_b_created", "evt_b_x"]


async def test_a_busy_session_takes_no_other_run(log: EventLog) -> None:
    run = await created(log, "a", session="s")
    with pytest.raises(SessionBusy) as refused:
        await log.create(a_run("b", session="s"), [an_entry("created", run="b")])
    assert refused.value.run_id == "run_a"
    assert log.by_key("p", "key-b") is None, "a refused create does not use up its key"
    await log.append("run_a", run.writer, [an_entry("end", status="completed")])
    await created(log, "b", session="s")
    assert [run.id for run in log.session_runs("p", "s", 0, 10)] == ["run_a", "run_b"]
    assert [run.id for run in log.session_runs("p", "s", 1, 10)] == ["run_b"]


async def test_the_limit_on_runs_counts_those_that_have_not_settled(log: EventLog) -> None:
    run = await created(log, "a")
    with pytest.raises(TooManyRuns):
        await log.create(a_run("b"), [an_entry("created", run="b")], runs_limit=1)
    await log.append("run_a", run.writer, [an_entry("end", status="completed")])
    _, made = await log.create(a_run("b"), [an_entry("created", run="b")], runs_limit=1)
    assert made
    assert [run.id for run in log.unfinished()] == ["run_b"]
    assert log.unfinished("q") == ()


async def test_a_new_run_lets_a_paused_ones_actions_lapse(log: EventLog) -> None:
    run = await created(log, "a", session="s")
    await log.append("run_a", run.writer, [an_entry("pause", status="requires_action")])
    await created(log, "b", session="s")
    assert log.run("run_a").resolution == "lapsed"  # type: ignore[union-attr]  # the run was created above
    assert (await log.resolve("run_a", "cancelled", 9)).resolution == "lapsed", "what was resolved stays"


async def test_a_cancel_is_recorded_once_and_not_after_the_end(log: EventLog) -> None:
    run = await created(log)
    assert (await log.ask_cancel("run_a", "requested")).cancel_reason == "requested"
    assert (await log.ask_cancel("run_a", "superseded")).cancel_reason == "requested"
    other = await created(log, "b")
    await log.append("run_b", other.writer, [an_entry("end", status="completed", run="b")])
    assert (await log.ask_cancel("run_b", "requested")).cancel_reason is None
    assert run.cancel_reason is None


async def test_an_append_trims_to_what_retention_keeps(log: EventLog) -> None:
    run = await created(log)
    record, _ = await log.append("run_a", run.writer, [an_entry(str(n)) for n in range(9)], keep=4)
    assert (record.first_sequence, record.last_sequence) == (7, 10)
    assert log.event_id("run_a", 6) == "evt_a_4", "the id at the boundary is still named"


async def test_a_trim_never_goes_back_and_not_beyond_the_end(log: EventLog) -> None:
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry(str(n)) for n in range(9)])
    assert (await log.trim("run_a", 5, 0)).first_sequence == 5
    assert (await log.trim("run_a", 3, 0)).first_sequence == 5
    assert (await log.trim("run_a", 99, 0)).first_sequence == 11


async def test_a_pin_holds_what_follows_a_snapshot(log: EventLog) -> None:
    """Retention waits for the pin, then catches up."""
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry(str(n)) for n in range(9)])
    await log.pin("run_a", 3, 0, 60_000)
    assert (await log.trim("run_a", 9, 59_999)).first_sequence == 4
    assert (await log.trim("run_a", 1, 60_000)).first_sequence == 9


async def test_a_renewed_log_has_another_epoch_and_another_writer(log: EventLog) -> None:
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("b")])
    renewed = await log.renew("run_a")
    assert (run.epoch, renewed.epoch) == ("a-1", "a-2")
    assert sequences(log) == [1, 2]
    with pytest.raises(WriterLost):
        await log.append("run_a", run.writer, [an_entry("c")])


async def test_a_lost_tail_takes_the_settling_with_it(log: EventLog) -> None:
    """The run goes on from what is left, and the steps that were lost are to be played again."""
    run = await created(log)
    entries = [an_entry("b", time=5), an_entry("c", time=6), an_entry("end", status="completed", time=7)]
    await log.append("run_a", run.writer, entries)
    renewed = await log.renew("run_a", keep=2)
    assert (renewed.status, renewed.last_sequence, renewed.last_id) == ("running", 2, "evt_a_b")
    assert (renewed.ended_at, renewed.last_time) == (None, moment(5))
    assert log.steps("run_a") == {"created", "b"}
    assert [run.id for run in log.unfinished()] == ["run_a"]
    await log.append("run_a", renewed.writer, [an_entry("c")])
    assert sequences(log) == [1, 2, 3]


async def test_steps_are_those_of_events_and_of_marks(log: EventLog) -> None:
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("3.call")])
    await log.mark("run_a", "4")
    await log.mark("run_a", "4")
    assert log.steps("run_a") == {"created", "3.call", "4"}


async def test_a_side_effect_counts_once_however_often_it_is_tried(log: EventLog) -> None:
    """RS-45: guarded by its operation id; the attempts are counted beside it."""
    await created(log)
    effect = Effect("run_a", "op_1", "charge", reversible=False)
    await log.perform(effect)
    assert (await log.perform(effect)) == replace(effect, attempts=2)
    await log.perform(Effect("run_a", "op_2", "mail", reversible=True))
    assert [done.operation_id for done in log.effects("run_a")] == ["op_1", "op_2"]
    counts = log.counts()
    assert (counts.effects, counts.effect_attempts) == (2, 3)


async def test_the_first_event_since_a_moment_is_found(log: EventLog) -> None:
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry(str(n), at=n * 10) for n in range(1, 6)])
    assert [log.first_since("run_a", at) for at in (0, 1, 10, 11, 50, 51)] == [1, 2, 2, 3, 6, 7]


async def test_a_clock_that_goes_back_hides_nothing_from_retention(log: EventLog) -> None:
    """An event counts as appended no earlier than the one before it."""
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("b", at=50), an_entry("c", at=10)])
    record, _ = await log.append("run_a", run.writer, [an_entry("d", at=20)])
    assert record.last_at == 50
    assert [log.first_since("run_a", at) for at in (50, 51)] == [2, 5]


async def test_revoked_tokens_are_remembered(log: EventLog) -> None:
    await log.revoke("t1")
    await log.revoke("t1")
    assert log.revoked() == {"t1"}


async def test_a_log_opened_again_has_all_it_answered(log: EventLog) -> None:
    """Closed and opened: for a durable log that is a new process, for the memory's a new engine."""
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("b")])
    await log.perform(Effect("run_a", "op_1", "charge", reversible=True))
    await log.mark("run_a", "9")
    before = (log.run("run_a"), log.read("run_a", 0, 9, ROOM), log.steps("run_a"), log.counts())
    await log.close()
    await log.open()
    assert (log.run("run_a"), log.read("run_a", 0, 9, ROOM), log.steps("run_a"), log.counts()) == before
