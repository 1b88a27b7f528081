"""Which faults cannot come in a session, so that a case with one would prove nothing."""

from dataclasses import replace

import pytest

from chaos_cases import SESSION, faults
from reattach_chaos.cases.chains import Chain, names_of
from reattach_chaos.cases.errands import Part
from reattach_chaos.cases.reach import unreached
from reattach_chaos.cases.session import RunOf, Session
from reattach_chaos.schedules import Fault, Place, Planned, at

FIN = Planned(fault=Fault.FIN, at=at(Place.AFTER_EVENT, 1))
LATER = replace(FIN, nth=3)
LIST = Planned(fault=Fault.FIN, at=at(Place.AFTER_REQUEST), route="list")


def of(route, run=1, place=Place.AFTER_REQUEST, fault=Fault.FIN, **rest):
    return Planned(fault=fault, at=at(place, run=run), route=route, **rest)


def stream(place, event=None, fault=Fault.FIN, **rest):
    return Planned(fault=fault, at=at(place, event, **rest))


def own(place, event, fault=Fault.KILL, **rest):
    return Planned(fault=fault, at=at(place, event, **rest), route=None)


@pytest.mark.parametrize(
    ("planned", "why"),
    [
        ([stream(Place.IN_COMMENT)], "nothing comes live"),
        ([stream(Place.BEFORE_LIVE)], "nothing comes live"),
        ([stream(Place.IN_CHARACTER, 1, width=4)], "no such character"),
        ([stream(Place.IDLE, 4)], "nothing is idle"),
        ([of("create", run=2)], "starts one run"),
        ([of("create", fault=Fault.UNAUTHORIZED, times=2)], "refused for good"),
        ([of("cancel", place=Place.IN_REQUEST_BODY)], "has no body"),
        ([of("cancel", fault=Fault.UNAUTHORIZED, times=2)], "refused for good"),
        ([of("cancel", times=3)], "is given up"),
        ([of("cancel"), FIN], "is chance"),
        ([of("status"), of("status", run=2)], "one run's status"),
        ([of("status", run=1), FIN], "another than the one that is followed"),
        ([FIN, LATER], "so many streams"),
        ([stream(Place.AFTER_EVENT, 4), replace(FIN, nth=2)], "so many streams"),
        ([stream(Place.AFTER_TERMINAL), replace(FIN, nth=2)], "so many streams"),
        ([LIST, replace(FIN, nth=2)], "so many streams"),
        ([replace(stream(Place.AFTER_EVENT, 1, Fault.STALL), direction="upstream"), replace(FIN, nth=2)], "so many"),
        ([stream(Place.CONNECTING, fault=Fault.LATENCY), replace(FIN, nth=2)], "so many streams"),
        ([own(Place.COMMITTED, 1), own(Place.COMMITTED, 2)], "committed at once"),
        ([own(Place.COMMITTED, 1, Fault.STORE_FAILURE)], "nothing is sure to be written"),
        ([FIN, own(Place.DELIVERED, 1, Fault.STORE_FAILURE)], "nothing is sure to be written"),
        ([of("cancel"), own(Place.COMMITTED, 1)], "is chance"),
    ],
)
def test_what_cannot_come_is_said(planned, why):
    assert why in unreached(faults(*planned), SESSION)


@pytest.mark.parametrize(
    "planned",
    [
        [FIN, replace(FIN, nth=2), LATER],
        [replace(FIN, times=2), LATER],
        [replace(FIN, nth="every"), LATER],
        [stream(Place.AFTER_REQUEST, fault=Fault.BUSY), replace(FIN, nth=2)],
        [of("status", run=2), FIN],
        [of("create", fault=Fault.UNAUTHORIZED)],
        [of("cancel", times=2)],
        [of("cancel"), LIST, stream(Place.AFTER_EVENT, 1, run=2)],
        [own(Place.COMMITTED, 1), own(Place.COMMITTED, 1, run=2)],
        [own(Place.RECEIVED, 1, Fault.STORE_FAILURE)],
        [FIN, own(Place.COMMITTED, 1, Fault.STORE_FAILURE)],
        [replace(FIN, fault=Fault.STALL), own(Place.DELIVERED, 1, Fault.STORE_FAILURE)],
    ],
)
def test_all_else_is_played(planned):
    assert unreached(faults(*planned), SESSION) == ""


def test_a_character_may_come_in_a_later_event():
    """There the fault is met instead; in an earlier one it would not be."""
    first, *others = SESSION.runs[0].events
    with_one = Session(runs=(RunOf(given="one", depth=0, events=(first, replace(others[0], widths=frozenset({2})))),))
    assert unreached(faults(stream(Place.IN_CHARACTER, 1, width=2)), with_one) == ""
    assert "no such character" in unreached(faults(stream(Place.IN_CHARACTER, 1, width=4)), with_one)


def test_the_run_that_is_followed_has_its_number_before_one_that_another_only_goes_on_from():
    """The chain of the third run has a second one, too, which nobody follows."""
    chains = [Chain(Part(2, "follow"), ("b",), ""), Chain(Part(3, "follow"), ("other", "c"), "")]
    assert names_of(chains, faults(FIN)) == names_of(chains[::-1], faults(FIN)) == ["(run 1)", "b", "c"]
