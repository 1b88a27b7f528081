"""Hypothesis draws schedules, plays them in the simulation, and makes a failing one small."""

import pytest
from hypothesis import HealthCheck, find, given, settings

from client.core.mutants import MUTANTS
from reattach_chaos.checkers import judge
from reattach_chaos.schedules import dumps, loads
from reattach_chaos.schedules.strategies import schedules
from reattach_chaos.sim import play_simulated

UNHURRIED = settings(deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))


def keeps_every_law(schedule):
    verdict = judge(play_simulated(schedule))
    assert not verdict.broken, f"{verdict.sentence()}\n{dumps(schedule)}"


@pytest.mark.parametrize("examples", [50, pytest.param(600, marks=pytest.mark.slow)])
def test_our_client_keeps_every_law(examples):
    """Whatever is drawn; the schedule that does not is in the message, as a file."""
    given(schedules(most=3))(settings(UNHURRIED, max_examples=examples)(keeps_every_law))()


@pytest.mark.slow
def test_a_wrong_client_is_found_and_its_schedule_made_small():
    """A cut is enough to show that it asks after the event before the last one; the small schedule does so from its file, too."""
    wrong = MUTANTS["inclusive cursor"]

    def duplicates(schedule):
        return "I2" in judge(play_simulated(schedule, step=wrong)).broken

    smallest = find(schedules(), duplicates, settings=settings(UNHURRIED, max_examples=2_000))
    assert len(smallest.faults) <= 2
    assert duplicates(loads(dumps(smallest)))
    assert not judge(play_simulated(smallest)).broken
