"""The simulation: our client keeps every law over drawn schedules, and the seed is the run.

One seed again: `python -c "from reattach_chaos.sim import volume; print(volume([4711]).invalid)"`. The ordinary run plays
2,000 schedules, `.ci/run slow` 100,000 more.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import time

import pytest

from reattach_chaos.checkers import judge
from reattach_chaos.history import CutFired, Died, Finished
from reattach_chaos.history.files import line
from reattach_chaos.schedules import Fault, Planned, Schedule, at, drawn_schedule, dumps, loads
from reattach_chaos.sim import play_simulated, volume
from reattach_chaos.sim.volume import BATCH

TESTS = pathlib.Path(__file__).parents[2]

NOTHING = "the server's log is empty: nothing was played"
"""A first create that is refused for good leaves nothing to judge."""


def check(seeds: range) -> None:
    """Play the seeds; whatever fails is printed as a schedule file."""
    begun = time.process_time()
    found = volume(seeds)
    rate = found.played / (time.process_time() - begun)
    print(f"seeds {seeds.start} to {seeds.stop - 1}: {found}; {rate:.0f} schedules a second")
    assert not found.invalid, "\n".join(
        f"seed {schedule.seed}: {verdict.sentence()}\n{dumps(schedule)}" for schedule, verdict in found.invalid
    )
    assert set(found.unknown) <= {NOTHING}, found.unknown
    assert found.unknown[NOTHING] <= found.played / 100
    assert found.fired > found.planned * 0.7, str(found)
    assert set(map(str, Fault)) <= set(found.fired_of), set(map(str, Fault)) - set(found.fired_of)


PARTS = 4
"""So that the suite's processes share them."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, 2_000, 2_000 // PARTS))
def test_no_law_is_broken_over_two_thousand_schedules(first):
    """Faults, deaths, full disks, restarts, epochs and retention, drawn by seed."""
    check(range(first, first + 2_000 // PARTS))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(10_000, 110_000, 2_500))
def test_no_law_is_broken_over_a_hundred_thousand(first):
    """The same; the rate is printed."""
    check(range(first, first + 2_500))


def digest(seeds, through=lambda schedule: schedule):
    """Return the digest of the histories' files."""
    whole = hashlib.sha256()
    for seed in seeds:
        for record in play_simulated(through(drawn_schedule(seed))):
            whole.update(f"{line(record)}\n".encode())
    return whole.hexdigest()


SAME = range(25)
ELSEWHERE = """
from chaos.sim.test_sim import SAME, digest
print(digest(SAME))
"""


def test_the_same_seed_is_the_same_history_in_every_process():
    """Byte for byte, whatever was played before and however strings are hashed; a schedule from its file is the same schedule."""
    here = digest(SAME)
    assert digest(SAME, lambda schedule: loads(dumps(schedule))) == here
    for hashes in ("1", "2"):
        path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
        env = {**os.environ, "PYTHONHASHSEED": hashes, "PYTHONPATH": path}
        told = subprocess.run([sys.executable, "-c", ELSEWHERE], env=env, capture_output=True, text=True, check=False)
        assert told.stdout.strip() == here, told.stderr


@pytest.mark.slow
def test_any_number_of_processes_finds_the_same():
    """The results are put together in the order of the seeds; progress is told after each batch, and `stop` is heeded."""
    heard = []
    here = volume(range(BATCH + 20), progress=lambda found: heard.append(found.played))
    assert heard == [BATCH, BATCH + 20]
    assert volume(range(BATCH + 20), jobs=2) == here
    assert volume(range(10**9), stop=lambda: True).played == BATCH


def test_without_a_fault_the_session_is_shown_once():
    """Three runs, each to its end, in one life."""
    history = play_simulated(Schedule(id="no-fault"))
    assert judge(history).word == "valid"
    assert [each.status for each in history.of(Finished)] == ["completed", "requires_action", "failed"]


@pytest.mark.parametrize("place", ["received", "committed", "delivered", "applied", "acknowledged"])
def test_a_process_dies_where_the_schedule_says(place):
    """Once, and the next process goes on to the end."""
    fault = Planned(fault=Fault.KILL, at=at(place, 3), route=None)
    history = play_simulated(Schedule(id="kill").with_faults((fault,)))
    assert len(history.of(Died)) == 1
    assert judge(history).word == "valid"
    assert len(history.of(CutFired)) == 1


def test_another_scenario_is_refused():
    """The simulation has its own server, which knows one session."""
    with pytest.raises(ValueError, match="the simulation plays 'session'"):
        play_simulated(Schedule(id="other", scenario="tools"))


@pytest.mark.parametrize(
    ("fault", "usual", "other"),
    [
        (Fault.SUSPEND, {"sleep_ms": 60_000}, {"sleep_ms": 0}),
        (Fault.EXPIRE, {"keep": 2}, {"keep": 0}),
        (Fault.DUPLICATE, {"events": 2}, {"events": 1}),
    ],
)
def test_a_fault_without_settings_is_done_with_the_usual_ones(fault, usual, other):
    """A sleep of no time, which it once was, is another case."""
    without, same, another = (
        play_simulated(
            Schedule(id="case", seed=3, faults=(Planned(fault=fault, at=at("after-event", 3), settings=said),))
        )
        for said in ({}, usual, other)
    )
    told = [[line(record) for record in history][1:] for history in (without, same, another)]
    assert told[0] == told[1] != told[2]
