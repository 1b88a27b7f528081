"""The gate's plan: each cut once, whoever comes."""

import pytest

from reattach_chaos.gate.plan import Lane, PlanError, StreamCut, read_plan


def lane(*cuts: object) -> Lane:
    (made,) = read_plan({"gate": "plan/1", "lanes": [{"name": "a", "cuts": list(cuts)}]})
    return made


def test_a_cut_is_taken_once():
    """The second connection that reaches the boundary passes."""
    every = lane({"route": "stream", "after": "every", "fault": "fin"})
    assert [every.take(7), every.take(7), every.take(8)] == ["fin", None, "fin"]


def test_several_faults_at_one_boundary_are_taken_one_after_the_other():
    """A boundary can be cut once with each fault."""
    both = lane(
        {"route": "stream", "after": "every", "fault": "rst"}, {"route": "stream", "after": [2], "fault": "stall"}
    )
    assert [both.take(2), both.take(2), both.take(2)] == ["rst", "stall", None]
    assert both.planned(3) == ["rst"]


def test_a_missed_cut_is_planned_again():
    """What could not be done at one connection is left for the next."""
    every = lane({"route": "stream", "after": [3], "fault": "stall"})
    assert every.take(3) == "stall"
    every.give_back(3, "stall")
    assert every.take(3) == "stall"


def test_a_plan_for_every_event_is_told_once_an_event():
    """The history names each planned cut once, when its event is first seen."""
    every = lane({"route": "stream", "after": "every", "fault": "rst"})
    assert [every.first_seen(1), every.first_seen(1)] == [["rst"], []]


def test_only_the_named_create_loses_its_answer():
    """Creates are counted a lane, from 1."""
    second = lane({"route": "create", "nth": 2, "fault": "lose"})
    assert [second.loses_create() for _ in range(3)] == [False, True, False]


def test_lanes_do_not_share():
    """Each lane has cuts of its own."""
    cut = {"route": "stream", "after": "every", "fault": "fin"}
    one, two = read_plan({"gate": "plan/1", "lanes": [{"name": "1", "cuts": [cut]}, {"name": "2", "cuts": [cut]}]})
    assert one.take(1) == two.take(1) == "fin"
    assert one.cuts == (StreamCut(after=None, fault="fin"),)


@pytest.mark.parametrize(
    "plan",
    [
        [],
        {"gate": "plan/2", "lanes": [{"name": "a"}]},
        {"gate": "plan/1", "lanes": []},
        {"gate": "plan/1", "lanes": [{"cuts": []}]},
        {"gate": "plan/1", "lanes": [{"name": "a"}, {"name": "a"}]},
        {"gate": "plan/1", "lanes": [{"name": "a", "cuts": [{"route": "stream", "after": "every", "fault": "lose"}]}]},
        {"gate": "plan/1", "lanes": [{"name": "a", "cuts": [{"route": "stream", "after": [0], "fault": "fin"}]}]},
        {"gate": "plan/1", "lanes": [{"name": "a", "cuts": [{"route": "create", "nth": 0, "fault": "lose"}]}]},
    ],
)
def test_what_is_not_a_plan_is_refused(plan):
    """A cut that would never fire must not look like one."""
    with pytest.raises(PlanError):
        read_plan(plan)
