import random
from collections import Counter
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings

from reattach_chaos.schedules import (
    CANONICAL,
    EVENT_KINDS,
    Fault,
    Multiplicity,
    Place,
    Planned,
    Shape,
    at,
    drawn_schedule,
    dumps,
    full,
    loads,
    multiplied,
    objection,
    pairwise,
    quick,
    shape_of,
    shrink,
    shrinks,
    sim,
    soak,
)
from reattach_chaos.schedules.fits import directions, places
from reattach_chaos.schedules.multiplicity import possible
from reattach_chaos.schedules.pairwise import all_combinations
from reattach_chaos.schedules.place import CODES
from reattach_chaos.schedules.schedule import ROUTES
from reattach_chaos.schedules.settings import settings_of
from reattach_chaos.schedules.strategies import schedules


def test_the_tables_have_every_fault_and_place_of_the_page():
    """F1 to F25 and ours, P1 to P19, C1 to C4."""
    assert [fault.code for fault in Fault] == [f"F{number}" for number in range(1, 27)]
    assert {f"P{number}" for number in range(1, 20)} | {f"C{number}" for number in range(1, 5)} <= set(CODES.values())
    assert set(CODES) == set(Place)


def test_every_fault_has_a_place_and_every_place_a_fault():
    """Else a word of the table could never be planned."""
    pairs = {(fault, place) for fault in Fault for route in (*ROUTES, None) for place in places(fault, route)}
    assert {fault for fault, _ in pairs} == set(Fault)
    assert {place for _, place in pairs} == set(Place)


def test_each_setting_of_a_fault_has_a_value_where_a_schedule_says_nothing():
    """But for the wish of a busy server, which is none then."""
    for fault in Fault:
        said_nothing = settings_of(Planned(fault=fault, at=at(Place.AFTER_REQUEST)))
        assert set(said_nothing) == set(fault.traits.settings) - {"retry_after_ms"}


def test_a_setting_that_is_said_holds_and_the_others_are_the_usual_ones():
    """Each by itself: who says how a server ends need not say how long it is away."""
    restart = Planned(fault=Fault.SERVER_RESTART, at=at(Place.IDLE, 2), settings={"signal": "term"})
    assert settings_of(restart) == {"signal": "term", "down_ms": 1_000}


def test_the_canonical_session_has_every_kind_of_event():
    """Heartbeats are no events: they have a place of their own."""
    assert {kind for _, _, kind in CANONICAL.events()} == set(EVENT_KINDS) - {"status", "heartbeat"}


def test_a_shape_is_made_from_a_log():
    """By the native protocol's types; one that it does not know is "other"."""
    shape = shape_of(["run.created", "message.delta", "vendor.note", "run.paused"], ["run.failed"])
    assert shape.runs == (("created", "delta", "other", "terminal"), ("error",))
    assert [shape.kind(1, 2), shape.kind(2, 1), shape.kind(2, 2), shape.kind(3, 1)] == ["delta", "error", None, None]


SAMPLES = {"quick": quick, "pairwise": pairwise, "full": lambda: full([30, 20, 10])}


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_samples_schedules_are_valid_and_have_ids_of_their_own(sample):
    """Each one can be written, read, named and played again."""
    found = SAMPLES[sample]()
    assert len({schedule.id for schedule in found}) == len(found)
    assert max(len(schedule.id) for schedule in found) < 130
    for schedule in found:
        assert loads(dumps(schedule)) == schedule, schedule.id


def test_the_quick_sample_cuts_every_boundary_three_ways_on_both_streams():
    """160 cases for the canonical session."""
    found = quick()
    assert len(found) == 160
    last = Counter(
        (planned.fault, planned.at.place, planned.phase, planned.at.run, planned.at.event)
        for planned in (schedule.faults[-1] for schedule in found)
    )
    for run, event, _ in CANONICAL.events():
        end = event == len(CANONICAL.runs[run - 1])
        for fault in (Fault.FIN, Fault.RST, Fault.STALL):
            for phase in ("stream", "resume"):
                assert last[fault, Place.BEFORE_BLANK_LINE, phase, run, event] == 1
                after = (Place.AFTER_TERMINAL, phase, run, None) if end else (Place.AFTER_EVENT, phase, run, event)
                assert last[(fault, *after)] == 1, (fault, after)


def test_the_quick_sample_loses_each_kind_of_request_and_its_answer():
    """All request phases, with lost request and lost response."""
    lost = {(schedule.faults[-1].phase, schedule.faults[-1].at.place) for schedule in quick()}
    phases = ("create", "stream", "resume", "status", "list", "cancel", "answer")
    assert lost >= {(phase, place) for phase in phases for place in (Place.IN_REQUEST_HEAD, Place.AFTER_REQUEST)}


def test_ids_are_readable():
    """A person who reads the id knows what was done."""
    ids = {schedule.id for schedule in quick()}
    assert {"rst-after-event-6", "fin-after-event-2-and-stall-after-event-3-on-resume", "fin-after-request-of-create",
            "rst-after-terminal", "stall-before-blank-line-of-event-1-of-run-2"} <= ids  # fmt: skip
    kill = Planned(fault=Fault.KILL, at=at("committed", 5), route=None)
    busy = Planned(fault=Fault.BUSY, at=at("after-request"), nth=3, times=2, settings={"status": 503})
    assert str(kill) == "kill-committed-of-event-5"
    assert str(busy) == "busy-after-request-on-stream-3-2-times-status-503"
    assert str(Planned(fault=Fault.FIN, at=at("after-event", 2), nth="every")) == "fin-after-event-2-on-every-stream"
    assert str(Planned(fault=Fault.RST, at=at("in-character", 2, width=3))) == "rst-in-3-byte-character-of-event-2"


def test_the_full_sample_cuts_after_every_byte():
    """From before the first to behind the last, with FIN and RST."""
    offsets = Counter(
        (schedule.faults[0].at.run, schedule.faults[0].at.offset, schedule.faults[0].fault)
        for schedule in full([5, 2])[: 2 * (6 + 3)]
    )
    assert offsets == Counter(
        (run, offset, fault)
        for run, length in ((1, 5), (2, 2))
        for offset in range(length + 1)
        for fault in ("fin", "rst")
    )


def test_every_possible_pair_of_axes_is_in_the_pairwise_sample():
    """No two values that can meet are left apart; what comes on every connection meets both streams."""

    def pairs(planned):
        both = planned.route == "stream" and planned.nth == "every"
        phases = ("stream", "resume") if both else (planned.phase,)
        values = [(planned.fault, planned.at.place, phase, planned.direction) for phase in phases]
        return {pair for each in values for pair in combinations(each, 2)}

    possible_pairs = {pair for each in all_combinations(CANONICAL) for pair in pairs(each.planned)}
    met = {pair for schedule in pairwise(seed=3) for planned in schedule.faults for pair in pairs(planned)}
    assert possible_pairs <= met


def test_the_seed_is_the_schedule():
    """The same seed gives the same plan, alone or in a row; another seed another one."""
    row = sim(7)
    assert [next(row) for _ in range(20)] == [drawn_schedule(seed) for seed in range(7, 27)]
    assert next(soak(7)) == drawn_schedule(7, "soak") != drawn_schedule(8, "soak")
    assert pairwise(seed=1) == pairwise(seed=1) != pairwise(seed=2)


@pytest.mark.parametrize("sample", ["soak", "sim"])
def test_drawn_schedules_are_valid_and_of_every_fault(sample):
    """Seeds 0 to 399; deaths, store failures, restarts, epochs and retention among them."""
    seen = Counter()
    for seed in range(400):
        schedule = drawn_schedule(seed, sample)
        assert all(objection(planned) is None for planned in schedule.faults), (seed, schedule)
        seen.update(planned.fault for planned in schedule.faults)
    missing = {Fault.NO_ROUTE, Fault.SUSPEND} if sample == "soak" else set()
    assert set(Fault) - set(seen) == missing


@settings(max_examples=30, deadline=None)
@given(schedule=schedules())
def test_hypothesis_draws_valid_schedules(schedule):
    """Whatever is drawn can be written and read."""
    assert loads(dumps(schedule)) == schedule


def test_how_often_a_fault_comes():
    """Once, on each connection, twice, at two places, or in a storm that ends."""
    planned = Planned(fault=Fault.FIN, at=at("after-event", 2))
    many = {each: multiplied(planned, each, CANONICAL) for each in Multiplicity}
    assert many[Multiplicity.ONCE] == (planned,)
    assert many[Multiplicity.EVERY][0].nth == "every"
    assert [many[each][0].times for each in (Multiplicity.TWICE, Multiplicity.STORM)] == [2, 8]
    assert [(each.nth, each.at.event) for each in many[Multiplicity.TWO_PLACES]] == [(1, 2), (2, 4)]


def test_no_case_is_cut_for_ever_at_a_place_without_progress():
    """A create that is always lost, or a stream that always ends before its first event, would prove nothing."""
    assert Multiplicity.EVERY in possible(Planned(fault=Fault.FIN, at=at("after-event", 2)))
    assert Multiplicity.EVERY in possible(Planned(fault=Fault.LATENCY, at=at("connecting")))
    assert Multiplicity.EVERY not in possible(Planned(fault=Fault.FIN, at=at("after-head")))
    assert Multiplicity.EVERY not in possible(Planned(fault=Fault.BUSY, at=at("after-request")))
    assert possible(Planned(fault=Fault.KILL, at=at("applied", 2), route=None)) == ("once", "two-places")


def test_a_shrink_proposes_valid_schedules_only():
    """A candidate that could not fire would be taken for a repaired bug."""
    for seed in range(100):
        for smaller in shrinks(drawn_schedule(seed)):
            assert all(objection(planned) is None for planned in smaller.faults)


def test_shrinking_finds_the_one_fault_that_matters():
    """Among four faults one was to blame, with FIN as with RST, at any event."""

    def fails(schedule):
        return any(
            planned.fault in (Fault.FIN, Fault.RST)
            and planned.at.place in (Place.IN_DATA_LINE, Place.BEFORE_BLANK_LINE)
            for planned in schedule.faults
        )

    guilty = Planned(fault=Fault.RST, at=at("in-data-line", 6), nth=2, times=8)
    others = [Planned(fault=Fault.LATENCY, at=at("connecting"), settings={"delay_ms": 7}) for _ in range(3)]
    found = shrink(drawn_schedule(1).with_faults((others[0], guilty, *others[1:])), fails)
    assert [str(planned) for planned in found.faults] == ["fin-before-blank-line-of-event-1-on-resume"]


def test_shrinking_shortens_a_script_that_is_at_hand():
    """Steps that do not matter go; a script that is only named cannot be shortened."""
    script = {"reattach": "scenario/1", "steps": [{"say": word} for word in "abcdefg"]}
    schedule = replace(drawn_schedule(1).with_faults(()), scenario=script)
    found = shrink(
        schedule, lambda each: {"say": "c"} in each.scenario["steps"] and {"say": "f"} in each.scenario["steps"]
    )
    assert found.scenario["steps"] == [{"say": "c"}, {"say": "f"}]
    assert list(shrinks(replace(schedule, scenario={"steps": [1]}))) == []
    assert list(shrinks(replace(schedule, scenario={"steps": 1}))) == []
    assert list(shrinks(replace(schedule, scenario="session"))) == []


def test_shrinking_ends():
    """Even where everything fails, and no more than so many are played."""
    assert shrink(drawn_schedule(2), lambda schedule: True).faults == ()
    tried = []
    shrink(drawn_schedule(2), lambda schedule: bool(tried.append(schedule)), most=3)
    assert len(tried) <= 3


def test_every_settled_direction_is_listed_once():
    """The first is the usual one."""
    assert directions(Fault.FIN, Place.AFTER_EVENT) == ("downstream",)
    assert directions(Fault.FIN, Place.IN_REQUEST_HEAD) == ("upstream",)
    assert directions(Fault.STALL, Place.IDLE)[0] == "downstream"


def test_random_shapes_have_valid_samples():
    """A run may have one event only."""
    chance = random.Random(5)
    for _ in range(5):
        shape = Shape(tuple(("delta",) * chance.randint(1, 4) for _ in range(chance.randint(1, 3))))
        for schedule in (*quick(shape), *pairwise(shape, seed=1)[:40]):
            assert all(objection(planned) is None for planned in schedule.faults)
