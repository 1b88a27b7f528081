"""The law of event logs (`logs/base.py`), run on every implementation."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reattach_mockserver.event import Entry, Operation
from reattach_mockserver.logs.base import (
    Answers,
    Claim,
    ClaimLost,
    Effect,
    EventLog,
    NotAnswered,
    OperationRecord,
    RunRecord,
    RunSettled,
    SessionBusy,
    TooManyRuns,
    WriterLost,
)
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.logs.pause import PauseRecord
from reattach_mockserver.logs.redis.log import RedisLog
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.moment import moment
from redis_stage import empty_database

pytestmark = pytest.mark.anyio

ALL_LOGS: dict[str, Callable[[Path], EventLog]] = {
    "memory": lambda folder: MemoryLog(),
    "sqlite": lambda folder: SqliteLog(folder / "log.db"),
    "redis": lambda folder: RedisLog(empty_database()),
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


async def sequences(log: EventLog, run_id: str = "run_a") -> list[int]:
    return [event.sequence for event in await log.read(run_id, 0, 10_000, ROOM)]


async def test_a_run_its_key_its_session_and_its_first_event_come_together(log: EventLog) -> None:
    run = await created(log)
    assert await log.run("run_a") == run == await log.by_key("p", "key-a")
    assert (run.last_sequence, run.status, run.number) == (1, "queued", 1)
    session = await log.session("p", "ses_a")
    assert session is not None
    assert session.last_run_id == "run_a"
    assert await sequences(log) == [1]


async def test_a_known_key_returns_its_run_and_writes_nothing(log: EventLog) -> None:
    """B43: the key is compared and kept by the log itself, in the transaction that creates."""
    first = await created(log)
    again, made = await log.create(a_run("b", key="key-a"), [an_entry("created", run="b")])
    assert (again, made) == (first, False)
    assert await log.run("run_b") is None
    assert (await log.counts()).runs == 1


async def test_creates_of_one_key_at_the_same_time_make_one_run(log: EventLog) -> None:
    """RS-42, B43: however many ask at once, one of them makes the run and all get it."""
    answers = await asyncio.gather(
        *(log.create(a_run(f"r{n}", key="one"), [an_entry("created", run=f"r{n}")]) for n in range(20))
    )
    assert sum(made for _, made in answers) == 1
    assert len({run.id for run, _ in answers}) == 1
    assert (await log.counts()).runs == 1


async def test_a_key_belongs_to_its_principal(log: EventLog) -> None:
    mine = await created(log, "a", key="k", principal="p")
    theirs = await created(log, "b", key="k", principal="q")
    assert await log.by_key("p", "k") == mine
    assert await log.by_key("q", "k") == theirs


async def test_sequences_have_no_holes_under_parallel_producers(log: EventLog) -> None:
    """RS-21: One order, from 1, whoever asks when; a reader never sees a sequence before all below it."""
    run = await created(log)
    done = asyncio.Event()
    seen: list[list[int]] = []

    async def look() -> None:
        while not done.is_set():
            seen.append(await sequences(log))
            await asyncio.sleep(0)

    async def produce(name: str) -> None:
        for number in range(25):
            await log.append("run_a", run.writer, [an_entry(f"{name}{number}")])

    looking = asyncio.create_task(look())
    await asyncio.gather(*(produce(name) for name in "bcdefgh"))
    done.set()
    await looking
    assert await sequences(log) == list(range(1, 2 + 7 * 25))
    assert all(view == list(range(1, len(view) + 1)) for view in seen)


async def test_every_event_names_the_one_before_it(log: EventLog) -> None:
    """RS-15."""
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("b"), an_entry("c")])
    events = [json.loads(event.body) for event in await log.read("run_a", 0, 10, ROOM)]
    assert [event["prev_id"] for event in events] == [None, "evt_a_created", "evt_a_b"]
    assert [event["id"] for event in events] == ["evt_a_created", "evt_a_b", "evt_a_c"]
    assert await log.event_id("run_a", 2) == "evt_a_b"
    assert await log.event_id("run_a", 0) is None
    assert await log.event_id("run_a", 4) is None


async def test_an_events_bytes_are_made_once(log: EventLog) -> None:
    """RS-04: What the append returned, and every later read, are the same bytes."""
    run = await created(log)
    _, stored = await log.append("run_a", run.writer, [an_entry("b")])
    assert await log.read("run_a", 1, 10, ROOM) == stored == await log.read("run_a", 1, 10, ROOM)


async def test_an_append_is_idempotent_by_event_id(log: EventLog) -> None:
    """RS-85: an append whose answer was lost adds nothing when it is sent again, wholly or in part."""
    run = await created(log)
    _, first = await log.append("run_a", run.writer, [an_entry("b")])
    _, second = await log.append("run_a", run.writer, [an_entry("b"), an_entry("c")])
    assert second[0] == first[0]
    assert await sequences(log) == [1, 2, 3]


async def test_the_settling_event_too_may_be_appended_again(log: EventLog) -> None:
    run = await created(log)
    end = an_entry("end", status="completed")
    _, first = await log.append("run_a", run.writer, [end])
    again, second = await log.append("run_a", run.writer, [end])
    assert first == second
    assert again.status == "completed"
    assert await sequences(log) == [1, 2]


async def test_nothing_is_appended_after_the_settling_event(log: EventLog) -> None:
    """RS-48."""
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("end", status="failed")])
    with pytest.raises(RunSettled):
        await log.append("run_a", run.writer, [an_entry("late")])
    assert await sequences(log) == [1, 2]


async def test_two_settling_events_at_once_leave_one(log: EventLog) -> None:
    """RS-54: completion against cancel has one outcome."""
    run = await created(log)
    ends = [an_entry("done", status="completed"), an_entry("gone", status="cancelled")]
    answers = await asyncio.gather(*(log.append("run_a", run.writer, [end]) for end in ends), return_exceptions=True)
    assert sum(isinstance(answer, RunSettled) for answer in answers) == 1
    assert await sequences(log) == [1, 2]


async def test_a_refused_append_writes_none_of_its_entries(log: EventLog) -> None:
    run = await created(log)
    with pytest.raises(RunSettled):
        await log.append("run_a", run.writer, [an_entry("end", status="completed"), an_entry("late")])
    assert await sequences(log) == [1]
    assert await log.run("run_a") == run


async def test_a_writer_that_was_taken_over_appends_nothing_more(log: EventLog) -> None:
    """RS-86: the token of a paused former writer is worth nothing."""
    run = await created(log)
    taken = await log.take_over("run_a")
    with pytest.raises(WriterLost):
        await log.append("run_a", run.writer, [an_entry("zombie")])
    await log.append("run_a", taken.writer, [an_entry("b")])
    assert [event.id for event in await log.read("run_a", 1, 10, ROOM)] == ["evt_a_b"]


async def test_of_two_that_take_a_run_over_one_does(log: EventLog) -> None:
    """RS-62: whoever names the token that it has seen is refused if that is no more."""
    run = await created(log)
    taken = await asyncio.gather(*(log.take_over("run_a", run.writer) for _ in range(5)), return_exceptions=True)
    assert sorted(type(each).__name__ for each in taken) == ["RunRecord"] + ["WriterLost"] * 4
    assert [each.id for each in await log.owned()] == ["run_a"]


async def test_the_status_changes_with_its_event(log: EventLog) -> None:
    """Rule 6: whoever read the settling event reads a settled status."""
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("started", status="running")])
    assert (await log.run("run_a")).status == "running"  # type: ignore[union-attr]  # the run was created above
    after, _ = await log.append("run_a", run.writer, [an_entry("end", status="completed", time=5)])
    assert await log.run("run_a") == after
    assert (after.status, after.ended_at, after.last_sequence) == ("completed", moment(5), 3)


async def test_time_never_goes_back(log: EventLog) -> None:
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("b", time=9_000), an_entry("c", time=1_000)])
    times = [json.loads(event.body)["time"] for event in await log.read("run_a", 0, 10, ROOM)]
    assert times == [moment(0), moment(9_000), moment(9_000)]


async def test_a_page_stops_at_its_limits(log: EventLog) -> None:
    """By number, and by bytes but for the first event, which always comes."""
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry(str(n)) for n in range(10)])
    assert [event.sequence for event in await log.read("run_a", 3, 4, ROOM)] == [4, 5, 6, 7]
    assert [event.sequence for event in await log.read("run_a", 3, 4, 1)] == [4]
    assert await log.read("run_a", 11, 4, ROOM) == ()


async def test_runs_do_not_see_each_others_events(log: EventLog) -> None:
    """RS-06, B56: no read crosses from one run into the next, at either end."""
    a, b, c = [await created(log, name) for name in "abc"]
    for run in (a, b, c):
        await log.append(run.id, run.writer, [an_entry("x", run=run.id[-1])])
    assert [event.id for event in await log.read("run_b", 0, 100, ROOM)] == ["evt_b_created", "evt_b_x"]


async def test_a_busy_session_takes_no_other_run(log: EventLog) -> None:
    run = await created(log, "a", session="s")
    with pytest.raises(SessionBusy) as refused:
        await log.create(a_run("b", session="s"), [an_entry("created", run="b")])
    assert refused.value.run_id == "run_a"
    assert await log.by_key("p", "key-b") is None, "a refused create does not use up its key"
    await log.append("run_a", run.writer, [an_entry("end", status="completed")])
    await created(log, "b", session="s")
    assert [run.id for run in await log.session_runs("p", "s", 0, 10)] == ["run_a", "run_b"]
    assert [run.id for run in await log.session_runs("p", "s", 1, 10)] == ["run_b"]


async def test_the_limit_on_runs_counts_those_that_have_not_settled(log: EventLog) -> None:
    run = await created(log, "a")
    with pytest.raises(TooManyRuns):
        await log.create(a_run("b"), [an_entry("created", run="b")], runs_limit=1)
    await log.append("run_a", run.writer, [an_entry("end", status="completed")])
    _, made = await log.create(a_run("b"), [an_entry("created", run="b")], runs_limit=1)
    assert made
    assert [run.id for run in await log.unfinished()] == ["run_b"]
    assert await log.unfinished("q") == ()
    assert (await log.busy("p"), await log.busy("q")) == (1, 0)


async def test_all_runs_are_listed_oldest_first_a_page_at_a_time(log: EventLog) -> None:
    """Of every principal, settled or not; numbers have no holes, so a page goes on after the last one's."""
    for name, principal in (("a", "p"), ("b", "q"), ("c", "p")):
        await log.create(a_run(name, principal=principal), [an_entry("created", run=name)])
    await log.append("run_a", 1, [an_entry("end", status="completed")])
    first = await log.runs(0, 2)
    assert [(run.id, run.number, run.status) for run in first] == [("run_a", 1, "completed"), ("run_b", 2, "queued")]
    assert [run.id for run in await log.runs(first[-1].number, 2)] == ["run_c"]
    assert await log.runs(3, 2) == ()


async def test_a_new_run_lets_a_paused_ones_actions_lapse(log: EventLog) -> None:
    run = await created(log, "a", session="s")
    await log.append("run_a", run.writer, [an_entry("pause", status="requires_action")])
    await created(log, "b", session="s")
    assert (await log.run("run_a")).resolution == "lapsed"  # type: ignore[union-attr]  # the run was created above
    assert (await log.resolve("run_a", "cancelled", 9)).resolution == "lapsed", "what was resolved stays"


async def paused(log: EventLog, name: str = "a", expires_at: int | None = None) -> RunRecord:
    run = await created(log, name, session="s")
    pause = PauseRecord(path="1", expires_at=expires_at).text()
    end = replace(an_entry("pause", status="requires_action", run=name), pause=pause)
    return (await log.append(run.id, run.writer, [end]))[0]


async def answer(
    log: EventLog, name: str, digest: str, *, key: str | None = None, at: int = 0
) -> tuple[RunRecord, bool]:
    run = replace(a_run(name, key=key, session="s"), continues="run_a", digest=f"body-{name}")
    answers = Answers(f'[{{"action_id":"act","decision":"{digest}"}}]', digest, at)
    return await log.create(run, [an_entry("created", run=name, at=at)], answers=answers)


async def test_a_continuation_and_what_it_resolves_are_one_transaction(log: EventLog) -> None:
    """RS-89: whoever sees the one sees the other; the paused run's log is as it was."""
    before = await paused(log)
    run, made = await answer(log, "b", "approve", at=7)
    after = await log.run("run_a")
    assert after is not None
    assert (made, run.continues, run.number) == (True, "run_a", 2)
    assert (after.continued_by, after.resolution, after.resolved_at) == ("run_b", "answered", 7)
    assert after.answers == '{"digest":"approve","responses":[{"action_id":"act","decision":"approve"}]}'
    assert (after.last_sequence, after.status) == (before.last_sequence, "requires_action")
    assert [run.id for run in await log.session_runs("p", "s", 0, 10)] == ["run_a", "run_b"]


async def test_equal_answers_find_the_continuation_and_give_it_their_key(log: EventLog) -> None:
    """RS-56: the key finds it ever after, with the digest of its own body."""
    await paused(log)
    first, _ = await answer(log, "b", "approve")
    again, made = await answer(log, "c", "approve", key="other")
    assert (again, made) == (replace(first, key="other", digest="body-c"), False)
    assert await log.run("run_c") is None
    assert await log.by_key("p", "other") == again
    assert await log.by_key("p", "key-b") == first
    assert await log.create(a_run("d", key="other"), [an_entry("created", run="d")]) == (again, False)


async def test_other_answers_are_refused_by_the_log_itself(log: EventLog) -> None:
    """RS-56: it judges inside the transaction, so of many at once one wins."""
    await paused(log)
    answers = await asyncio.gather(
        *(answer(log, f"r{n}", ["approve", "reject"][n % 2]) for n in range(6)), return_exceptions=True
    )
    refused = [each for each in answers if isinstance(each, NotAnswered)]
    runs = {each[0].id for each in answers if not isinstance(each, BaseException)}
    assert [each.code for each in refused] == ["action_resolved"] * 3
    assert len(runs) == 1
    assert (await log.counts()).runs == 2
    assert await log.by_key("p", "key-r1") is None or await log.by_key("p", "key-r0") is None, (
        "a refused create leaves its key"
    )


async def test_what_does_not_wait_takes_no_answers(log: EventLog) -> None:
    """Running; settled otherwise; lapsed; expired, and expired when it lapsed."""
    run = await created(log, "a", session="s")
    for status, code in ((None, "not_paused"), ("completed", "not_paused")):
        if status is not None:
            await log.append("run_a", run.writer, [an_entry("end", status=status)])
        with pytest.raises(NotAnswered) as refused:
            await answer(log, "b", "approve")
        assert refused.value.code == code
    assert (await log.counts()).runs == 1


@pytest.mark.parametrize(
    ("resolution", "at", "code"),
    [("lapsed", 5, "action_resolved"), ("cancelled", 5, "action_resolved"), ("lapsed", 10, "action_expired"),
     ("expired", 10, "action_expired"), (None, 10, "action_expired")],
)  # fmt: skip
async def test_a_pause_that_is_over_takes_no_answers(log: EventLog, resolution: str, at: int, code: str) -> None:
    """However late it is asked: what had lapsed in time does not come to have expired."""
    await paused(log, expires_at=10)
    if resolution is not None:
        await log.resolve("run_a", resolution, at)
    with pytest.raises(NotAnswered) as refused:
        await answer(log, "b", "approve", at=at + 20)
    assert refused.value.code == code
    assert await log.run("run_b") is None


async def test_a_run_that_was_answered_keeps_its_tail(log: EventLog) -> None:
    """Its continuation is in the same log and came later, so nothing before it was lost."""
    await paused(log)
    await answer(log, "b", "approve")
    renewed = await log.renew("run_a", keep=1)
    assert (renewed.epoch, renewed.status, renewed.last_sequence) == ("a-2", "requires_action", 2)
    assert renewed.continued_by == "run_b"


async def test_an_operation_comes_with_the_event_that_tells_of_it(log: EventLog) -> None:
    """RS-47: found by principal and id, with the append's own transaction; refused together too."""
    run = await created(log)
    call = Operation(id="op", tool="charge", reversible=False, external=True)
    await log.append("run_a", run.writer, [replace(an_entry("call"), operation=call)])
    told = OperationRecord("run_a", "op", "charge", "pending", reversible=False, external=True, waits=False)
    assert await log.operation("p", "op") == told
    assert await log.operation("q", "op") is None
    assert await log.operation("p", "other") is None
    taken = await log.take_over("run_a")
    with pytest.raises(WriterLost):
        await log.append("run_a", run.writer, [replace(an_entry("x"), operation=replace(call, id="zombie"))])
    assert await log.operation("p", "zombie") is None
    failed = replace(an_entry("result"), operation=replace(call, status="failed"))
    await log.append("run_a", taken.writer, [failed])
    assert await log.operation("p", "op") == replace(told, status="failed")


async def test_an_effect_commits_its_operation_with_its_first_result(log: EventLog) -> None:
    """RS-45: a second attempt brings another result, and it is not taken; nor does a lost tail take the effect back."""
    run = await created(log)
    call = replace(an_entry("call"), operation=Operation(id="op", tool="t", reversible=True, external=True))
    await log.append("run_a", run.writer, [call])
    for result in ("1", "2"):
        done = await log.perform(Effect("run_a", "op", "t", reversible=True, result=result))
    assert (done.result, done.attempts) == ("1", 2)
    known = OperationRecord("run_a", "op", "t", "committed", reversible=True, external=True, waits=False, result="1")
    assert await log.operation("p", "op") == known
    renewed = await log.renew("run_a", keep=1)
    await log.append("run_a", renewed.writer, [replace(call, id="evt_again")])
    assert await log.operation("p", "op") == known


async def test_of_several_runs_the_newest_knows_an_operation(log: EventLog) -> None:
    for name in "abc":
        run = await created(log, name)
        told = Operation(id="op", tool=name)
        await log.append(run.id, run.writer, [replace(an_entry("call", run=name), operation=told)])
    await log.perform(Effect("run_a", "op", "a", reversible=True))
    found = await log.operation("p", "op")
    assert found is not None
    assert (found.run_id, found.status, found.reversible) == ("run_c", "pending", None)


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
    assert await log.event_id("run_a", 6) == "evt_a_4", "the id at the boundary is still named"


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
    assert await sequences(log) == [1, 2]
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
    assert await log.steps("run_a") == {"created", "b"}
    assert [run.id for run in await log.unfinished()] == ["run_a"]
    await log.append("run_a", renewed.writer, [an_entry("c")])
    assert await sequences(log) == [1, 2, 3]


async def test_steps_are_those_of_events_and_of_marks(log: EventLog) -> None:
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("3.call")])
    await log.mark("run_a", "4")
    await log.mark("run_a", "4")
    assert await log.steps("run_a") == {"created", "3.call", "4"}


async def test_a_side_effect_counts_once_however_often_it_is_tried(log: EventLog) -> None:
    """RS-45: guarded by its operation id; the attempts are counted beside it."""
    await created(log)
    effect = Effect("run_a", "op_1", "charge", reversible=False)
    await log.perform(effect)
    assert (await log.perform(effect)) == replace(effect, attempts=2)
    await log.perform(Effect("run_a", "op_2", "mail", reversible=True))
    assert [done.operation_id for done in await log.effects("run_a")] == ["op_1", "op_2"]
    counts = await log.counts()
    assert (counts.effects, counts.effect_attempts) == (2, 3)


async def test_a_claim_voids_every_claim_before_it(log: EventLog) -> None:
    """RS-46, RS-92: whoever slept through its replacement finds its late effect refused, before the other's effect and after it."""
    run = await created(log)
    late = await log.claim("run_a", run.writer, "op")
    now = await log.claim("run_a", run.writer, "op")
    assert (late.number, now.number, late.done, now.done) == (1, 2, None, None)
    effect = Effect("run_a", "op", "charge", reversible=False, result='"mine"')
    for number in (0, late.number):
        with pytest.raises(ClaimLost):
            await log.perform(replace(effect, result='"late"'), claim=number)
    assert (await log.effects("run_a"), (await log.counts()).effect_attempts) == ((), 0)
    assert (await log.perform(effect, claim=now.number)).result == '"mine"'
    with pytest.raises(ClaimLost):
        await log.perform(replace(effect, result='"late"'), claim=late.number)
    assert await log.effects("run_a") == (effect,)
    assert (await log.perform(effect, claim=now.number)).attempts == 2, "an answer that was lost is asked for again"


async def test_what_is_done_cannot_be_claimed(log: EventLog) -> None:
    """RS-45: the claim returns the effect that stands, and voids nothing."""
    run = await created(log)
    claim = await log.claim("run_a", run.writer, "op")
    effect = await log.perform(Effect("run_a", "op", "charge", reversible=False, result="1"), claim=claim.number)
    assert await log.claim("run_a", run.writer, "op") == Claim("op", 1, effect)
    plain = await log.perform(Effect("run_a", "never_claimed", "mail", reversible=True))
    assert await log.claim("run_a", run.writer, "never_claimed") == Claim("never_claimed", 0, plain)


async def test_only_the_runs_writer_claims_and_only_while_it_goes_on(log: EventLog) -> None:
    run = await created(log)
    taken = await log.take_over("run_a")
    with pytest.raises(WriterLost):
        await log.claim("run_a", run.writer, "op")
    await log.append("run_a", taken.writer, [an_entry("end", status="completed")])
    with pytest.raises(RunSettled):
        await log.claim("run_a", taken.writer, "op")
    other = await created(log, "b")
    assert (await log.claim("run_b", other.writer, "op")).number == 1, "refused claims left nothing; runs do not meet"


async def test_claims_survive_and_a_lost_tail_takes_none_back(log: EventLog) -> None:
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("call")])
    await log.claim("run_a", run.writer, "op")
    await log.close()
    await log.open()
    renewed = await log.renew("run_a", keep=1)
    assert (await log.claim("run_a", renewed.writer, "op")).number == 2


async def test_many_claims_at_once_leave_one_that_holds(log: EventLog) -> None:
    run = await created(log)
    claims = await asyncio.gather(*(log.claim("run_a", run.writer, "op") for _ in range(9)))
    assert sorted(claim.number for claim in claims) == list(range(1, 10))
    effect = Effect("run_a", "op", "charge", reversible=False)
    done = await asyncio.gather(*(log.perform(effect, claim=claim.number) for claim in claims), return_exceptions=True)
    assert sorted(type(each).__name__ for each in done) == ["ClaimLost"] * 8 + ["Effect"]


async def test_what_a_run_was_asked_is_kept(log: EventLog) -> None:
    run, _ = await log.create(replace(a_run(), input='{"text":"x"}'), [an_entry("created")])
    assert await log.run("run_a") == run
    assert run.input == '{"text":"x"}'


async def test_an_operation_may_stand_as_unknown(log: EventLog) -> None:
    run = await created(log)
    told = Operation(id="op", tool="charge", reversible=False)
    for status in ("pending", "unknown"):
        entry = replace(an_entry(status), operation=replace(told, status=status))  # type: ignore[arg-type]  # both are words of it
        await log.append("run_a", run.writer, [entry])
    found = await log.operation("p", "op")
    assert found is not None
    assert found.status == "unknown"


async def test_the_first_event_since_a_moment_is_found(log: EventLog) -> None:
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry(str(n), at=n * 10) for n in range(1, 6)])
    assert [await log.first_since("run_a", at) for at in (0, 1, 10, 11, 50, 51)] == [1, 2, 2, 3, 6, 7]


async def test_a_clock_that_goes_back_hides_nothing_from_retention(log: EventLog) -> None:
    """An event counts as appended no earlier than the one before it."""
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("b", at=50), an_entry("c", at=10)])
    record, _ = await log.append("run_a", run.writer, [an_entry("d", at=20)])
    assert record.last_at == 50
    assert [await log.first_since("run_a", at) for at in (50, 51)] == [2, 5]


async def test_revoked_tokens_are_remembered(log: EventLog) -> None:
    await log.revoke("t1")
    await log.revoke("t1")
    assert await log.revoked() == {"t1"}


async def test_a_log_opened_again_has_all_it_answered(log: EventLog) -> None:
    """Closed and opened: for a durable log that is a new process, for the memory's a new engine."""
    run = await created(log)
    await log.append("run_a", run.writer, [an_entry("b")])
    await log.perform(Effect("run_a", "op_1", "charge", reversible=True))
    await log.mark("run_a", "9")
    await log.append("run_a", run.writer, [replace(an_entry("p", status="requires_action"), pause='{"path":"1"}')])

    async def known() -> tuple[object, ...]:
        keys = (await log.by_key("p", "key-b"), await log.by_key("p", "alias"))
        return (
            await log.run("run_a"),
            await log.read("run_a", 0, 9, ROOM),
            await log.steps("run_a"),
            await log.counts(),
            keys,
            await log.operation("p", "op_1"),
        )

    await answer(log, "b", "approve")
    await answer(log, "c", "approve", key="alias")
    before = await known()
    await log.close()
    await log.open()
    assert await known() == before
