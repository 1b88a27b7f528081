"""Who plays, and where they are killed."""

import pytest

from reattach_chaos.demo.cast import cast, gate_plan
from reattach_chaos.gate.plan import read_plan


@pytest.mark.parametrize("events", [2, 3, 5, 12, 40, 132, 395, 5000])
@pytest.mark.parametrize("seed", [0, 7, 8])
def test_a_client_is_killed_only_where_it_can_be(events, seed):
    """Five kills where there are places: after the first event, before the last, each place once, in order."""
    starter, *others = cast(events, seed)
    places = [hold.sequence for hold in starter.holds]
    assert places == sorted(set(places))
    assert len(places) == min(5, events - 2)
    assert all(2 <= place < events for place in places)
    assert starter.starts
    assert not any(part.starts or part.holds for part in others)


def test_a_seed_gives_the_same_kills():
    """The number is printed so that a demo can be had again."""
    assert cast(132, 7) == cast(132, 7)
    assert cast(132, 7)[0].holds != cast(132, 8)[0].holds


def test_one_kill_comes_before_the_event_is_shown():
    """Both moments are tried: just after showing, and just before."""
    assert [hold.when for hold in cast(132, 7)[0].holds] == ["after"] * 4 + ["before"]


@pytest.mark.parametrize("naive", [False, True])
def test_every_fault_has_followers_and_a_lane(naive):
    """Each part goes through a lane of the plan that the gate reads."""
    lanes = {lane.name for lane in read_plan(gate_plan(7))}
    assert lanes == {part.lane for part in cast(132, 7, naive=naive)}
