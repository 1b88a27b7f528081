"""THE property: whatever is cut, repeated, delayed, reordered by reconnects, the caller sees exactly the log, once, in order.

A schedule (`cuts/schedule.py`) says what happens to a run, its server, its connections, its journal and its processes; the laws
(`cuts/laws.py`) are judged at every event and at the end. Times are virtual, so nothing here waits.

    REATTACH_SCHEDULE=4711 pytest tests/client/test_any_cuts.py      # one schedule again, in both faces, printed

The ordinary run plays 500 schedules through the asynchronous face and 60 through the blocking one, 100 and 40 more over a
WebSocket, and some hundreds that Hypothesis draws and would shrink; `.ci/run slow` plays 10,000 and 500 more, and 5,000 over a
WebSocket. A mutant (`core/mutants.py`, or the table without a row) is killed when a schedule breaks a law with it, within a bounded
number of schedules.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import anyio.to_thread
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from client.core.mutants import MUTANTS, Machine, row_left_out
from client.cuts.play import play
from client.cuts.play_blocking import play_blocking
from client.cuts.schedule import Schedule, schedule_from
from reattach.core import messages as m
from reattach.core.state import State
from reattach.core.subscription import TABLE, step
from reattach.testing import Beat, Leg

SECONDS = 20.0
"""Real seconds for one schedule, which needs some hundredths: a client that never comes to rest fails, it does not hang."""


@pytest.fixture(autouse=True)
def no_threads_and_no_collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store in memory needs no thread to wait in, and a hop to one costs more than the rest of a schedule."""

    async def here(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return function(*args)

    monkeypatch.setattr(anyio.to_thread, "run_sync", here)
    gc.disable()
    yield
    gc.enable()


def seeded(seed: int) -> Schedule:
    return schedule_from(random.Random(seed))


async def judged(schedule: Schedule, machine: Machine = step, *, socket: bool = False) -> list[str]:
    """Play it, for so long."""
    return await asyncio.wait_for(play(schedule, machine, socket=socket), SECONDS)


async def all_of(seeds: range, *, socket: bool = False) -> None:
    for seed in seeds:
        broken = await judged(seeded(seed), socket=socket)
        assert not broken, f"REATTACH_SCHEDULE={seed}: {broken}\n{seeded(seed)}"


@pytest.mark.parametrize("first", [0, pytest.param(250, marks=pytest.mark.slow)])
def test_the_caller_sees_exactly_the_log_once_in_order(first: int) -> None:
    """Volume, through the asynchronous face."""
    asyncio.run(all_of(range(first, first + 250)))


def test_the_same_over_websocket() -> None:
    """Cut between and within the frames of a socket, closed with and without a close, refused by message and by status."""
    asyncio.run(all_of(range(100), socket=True))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2_000, 12_000, 500))
def test_the_same_ten_thousand_times(first: int) -> None:
    asyncio.run(all_of(range(first, first + 500)))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2_000, 7_000, 500))
def test_the_same_over_websocket_five_thousand_times(first: int) -> None:
    asyncio.run(all_of(range(first, first + 500), socket=True))


def all_of_blocking(seeds: range, *, socket: bool = False) -> None:
    for seed in seeds:
        broken = play_blocking(seeded(seed), socket=socket)
        assert not broken, f"REATTACH_SCHEDULE={seed}: {broken}\n{seeded(seed)}"


def test_the_same_through_the_blocking_face() -> None:
    """The caller is a thread of its own."""
    all_of_blocking(range(60))


def test_the_same_over_websocket_through_the_blocking_face() -> None:
    all_of_blocking(range(40), socket=True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20_000, 20_500, 100))
def test_the_same_through_the_blocking_face_many_times(first: int) -> None:
    all_of_blocking(range(first, first + 100))


BLAMELESS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


@given(st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=BLAMELESS)
def test_what_hypothesis_draws_is_no_different(rng: random.Random) -> None:
    """A failing schedule is shrunk."""
    schedule = schedule_from(rng)
    note(repr(schedule))
    assert asyncio.run(judged(schedule)) == []


@pytest.mark.skipif("REATTACH_SCHEDULE" not in os.environ, reason="repeats the schedule named by REATTACH_SCHEDULE")
def test_one_schedule_again() -> None:
    seed = int(os.environ["REATTACH_SCHEDULE"])
    print(seeded(seed))
    for socket in (False, True):
        assert asyncio.run(judged(seeded(seed), socket=socket)) == []
        assert play_blocking(seeded(seed), socket=socket) == []


# schedules that once showed a fault -----------------------------------------------------------------------------------


def test_a_gap_that_is_adopted_by_attaching_never_has_two_connections() -> None:
    """on_gap="continue" closed and opened in one step, and the new connection was there before the old one had gone."""
    beats = (*[Beat()] * 4, Beat(do="trim", count=2), Beat(after=0.5), Beat(after=0.5, do="end"))
    assert asyncio.run(judged(Schedule(beats=beats, on_gap="continue"))) == []


def test_a_stream_that_only_repeats_and_then_holds_back_is_left() -> None:
    """Without `stream.attached` it counted as not yet attached for ever: alive by its heartbeats, never asked for the rest."""
    legs = (Leg(cut=(5, 0), how="reset"), Leg(again=3, attached=False, cut=(4, 0), how="hold"))
    schedule = Schedule(beats=(*[Beat()] * 3, Beat(after=3), Beat(after=3, do="end")), legs=legs)
    assert asyncio.run(judged(schedule)) == []


# the generator itself -------------------------------------------------------------------------------------------------


def test_schedules_hold_every_kind_of_fault() -> None:
    """None is so rare that the ordinary run would not meet it often."""
    found: dict[str, int] = {}
    for seed in range(2_000):
        schedule = seeded(seed)
        kinds = {f"beat {beat.do}" for beat in schedule.beats} | {f"life {life.do}" for life in schedule.lives}
        kinds |= {f"cut {leg.how}" for leg in schedule.legs if leg.cut} | {
            f"refuse {leg.refuse}" for leg in schedule.legs
        }
        kinds |= {"inside" for leg in schedule.legs if leg.cut and leg.cut[1]} | {
            "again" for leg in schedule.legs if leg.again
        }
        kinds |= {"late" for lag in schedule.lags if lag} | {"full" for _ in schedule.failures}
        kinds |= {f"create {trip.lost}" for trip in schedule.creates} | {f"gap {schedule.on_gap}"}
        kinds |= {f"status {trip.lost or trip.refuse or trip.delay}" for trip in schedule.statuses}
        kinds |= {"reached" for life in schedule.lives if life.do == "die" and life.reached and schedule.lags}
        for kind in kinds:
            found[kind] = found.get(kind, 0) + 1
    expected = {f"beat {do}" for do in ("event", "end", "trim", "rotate", "lose")}
    expected |= {f"life {do}" for do in ("die", "close", "break", "raise", "detach")}
    expected |= {f"cut {how}" for how in ("fin", "reset", "stall")} | {"inside", "again", "late", "full", "reached"}
    expected |= {f"refuse {status}" for status in (503, 429, 408, 425, 500, 502, 401, 404, 204)}
    expected |= {"create after", "create before", "create None", "gap raise", "gap snapshot", "gap continue"}
    expected |= {"status after", "status before", "status 503", "status None", "status 2.9"}
    assert {kind for kind in expected if found.get(kind, 0) < 20} == set()


# mutants --------------------------------------------------------------------------------------------------------------

MOST = 300
"""Schedules in which a mutant must have broken a law."""


def asked_after_admitted(state: State, given: m.Input) -> tuple[State, tuple[m.Effect, ...]]:
    """Cursor before commit, as a client without a journal's answer would do it: asked after what came, not what is durable."""
    after, effects = step(state, given)
    asked = tuple(each._replace(after=after.admitted.cursor) if type(each) is m.Open else each for each in effects)
    return (after if asked == effects else after._replace(asked=after.admitted)), asked


def any_schedule(schedule: Schedule) -> bool:
    return True


def moving(schedule: Schedule) -> bool:
    """The log does more than grow: the only way into the rows of a resync."""
    return any(beat.do not in ("event", "end") for beat in schedule.beats)


def kills(machine: Machine, wanted: Callable[[Schedule], bool] = any_schedule) -> tuple[int, list[str]]:
    """Return how many schedules were played until one broke a law, and which it broke; [] if none of so many did."""

    async def played() -> tuple[int, list[str]]:
        count = 0
        for seed in range(20_000):
            schedule = seeded(seed)
            if not wanted(schedule):
                continue
            count += 1
            try:
                broken = await asyncio.wait_for(play(schedule, machine), SECONDS / 2)
            except TimeoutError:
                broken = ["it never comes to rest"]
            if broken or count == MOST:
                return count, broken
        raise AssertionError("too few schedules are wanted")

    return asyncio.run(played())


NAMED: dict[str, tuple[Machine, str]] = {
    "no dedupe": (MUTANTS["no dedupe"], "exactly the log"),
    "inclusive cursor": (MUTANTS["inclusive cursor"], "exactly the log"),
    "cursor before commit": (MUTANTS["cursor before commit"], "an error has a cause"),
    "cursor before commit, asked after": (asked_after_admitted, "asked after what is committed"),
    "deliver before commit": (MUTANTS["deliver before commit"], "delivered <= committed"),
    "backoff reset on connect": (MUTANTS["backoff reset on connect"], "waits grow without progress"),
    "end of stream taken for the end": (MUTANTS["end of stream taken for the end"], "exactly the log"),
}


def test_every_named_mutation_is_played() -> None:
    """Those of issue 3; a new one comes with the law that it breaks."""
    assert set(MUTANTS) <= set(NAMED)


@pytest.mark.parametrize("name", NAMED)
def test_a_mutation_is_killed(name: str) -> None:
    """By the law that it is against."""
    machine, law = NAMED[name]
    count, broken = kills(machine)
    print(f"{name}: schedule {count}: {broken}")
    assert any(each.startswith((law, "an end has evidence")) for each in broken), broken


NOTICED: dict[str, Callable[[Schedule], bool]] = {
    "attached_at_the_end": any_schedule,
    "attached": any_schedule,
    "opened": any_schedule,
    "received": any_schedule,
    "heard": any_schedule,
    "lost": any_schedule,
    "ended": any_schedule,
    "refused_for_now": any_schedule,
    "refused_the_token": any_schedule,
    "refused_as_missing": any_schedule,
    "refused_the_cursor": moving,
    "refused_by_another_protocol": any_schedule,
    "declined": any_schedule,
    "closing": any_schedule,
    "connect_elapsed": any_schedule,
    "idle_elapsed": any_schedule,
    "behind_elapsed": any_schedule,
    "reconnect_elapsed": any_schedule,
    "resync_elapsed": moving,
    "snapshot_read": moving,
    "opened_at_the_earliest": moving,
    "gap_committed": moving,
    "drained_by_commit": moving,
    "committed_the_end": any_schedule,
    "committed": any_schedule,
    "outcome_committed": any_schedule,
    "commit_failed": any_schedule,
    "poll_elapsed": any_schedule,
    "status_of_another_epoch": moving,
    "status_settled": any_schedule,
    "status_answered": any_schedule,
}
"""Rows whose absence an application would see."""

UNNOTICED: dict[str, str] = {
    "opened_elsewhere": "the first event of the other epoch says the same",
    "opened_on_another_event": "the next event's prev_id says the same",
    "opened_in_the_middle": "the first event after the hole says the same",
    "closing_for_good": "the next attach is refused for the same reason",
    "ended_at_the_tail": "only where positions cannot be compared; natively they can",
    "hinted": "the pace alone; B11 in test_reports",
    "refused": "no schedule is hopeless; B26 in test_reports",
    "budget_elapsed": "no schedule is hopeless; B24 in test_reports",
    "snapshot_failed": "the boundary is asked for again when its timer fires, only later than it might be",
    "connect_elapsed_at_the_earliest": "the resync timer asks again",
    "refused_at_the_earliest": "the connect timer stands in for it",
    "declined_at_the_earliest": "the connect timer stands in for it",
    "lost_at_the_earliest": "the connect timer stands in for it",
    "lease_lost": "one process at a time lives here; the promises' tests have two",
    "full": 'only with keep="cursor"',
    "drained_by_handler": 'only with keep="cursor"',
    "closed": "closing cancels the tasks as well",
    "stall_elapsed": "a notice only",
    "stream_elapsed": "long polls go on to bring everything; test_07_buffering in promises",
    "ended_for_now": 'only with transport="poll"',
    "woke": "no machine sleeps here; B22 in promises",
    "woke_elsewhere": "no machine sleeps here; B22 in promises",
    "status_unanswered": "the pace alone",
    "status_missing": "no status says 404 here; the stream's 404 is judged",
    "status_denied": "no status says 401 here; the stream's 401 is judged",
}
"""Rows that no law over a whole run can miss, and why. core/test_table.py kills each of them by its script."""


def test_every_row_of_the_table_is_judged_here_or_has_its_reason() -> None:
    """A new row is put into one of the two."""
    assert sorted([*NOTICED, *UNNOTICED]) == sorted({row.name for row in TABLE.rows})


LONG = frozenset({"gap_committed"})
"""Rows that take thousands of schedules until one notices."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in NOTICED]
)
def test_a_row_left_out_is_killed(name: str) -> None:
    """Somebody would have lost, doubled, missed or waited for something."""
    count, broken = kills(row_left_out(name), NOTICED[name])
    print(f"{name}: schedule {count}: {broken}")
    assert broken
