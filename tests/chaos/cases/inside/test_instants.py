"""Faults at our own client's instants, on real sockets: it is killed there, its store fails or lags, it sleeps; all is valid."""

import sys

import pytest

from chaos_cases import faults, played
from reattach_chaos import cli
from reattach_chaos.cases.inside import striker
from reattach_chaos.cases.inside.instants import Instant, Instants, are_inside, instants_of, read_word
from reattach_chaos.cases.recipe import played_with
from reattach_chaos.cases.theatre import Bill
from reattach_chaos.history import (
    Acked,
    Applied,
    Committed,
    CutFired,
    Delivered,
    Died,
    Finished,
    Logged,
    Said,
    Store,
    Surfaced,
)
from reattach_chaos.schedules import Fault, Place, Planned, at, dumps
from reattach_chaos.sim import play_simulated

FIN = Planned(fault=Fault.FIN, at=at(Place.AFTER_EVENT, 2))


def own(fault, place, event, **settings):
    return Planned(fault=fault, at=at(place, event), route=None, settings=settings)


KILLS = {
    place: faults(FIN, own(Fault.KILL, place, 3))
    for place in (Place.RECEIVED, Place.COMMITTED, Place.APPLIED, Place.ACKNOWLEDGED)
}
SHOWN = faults(FIN, own(Fault.KILL, Place.DELIVERED, 3), Planned(fault=Fault.SUSPEND, at=at(Place.CONNECTING), nth=2))
FAILURES = {
    reason: faults(FIN, own(Fault.STORE_FAILURE, Place.RECEIVED, 3, reason=reason))
    for reason in ("full", "io", "locked")
}
ARMED = faults(FIN, own(Fault.STORE_FAILURE, Place.COMMITTED, 2))
LATE = faults(own(Fault.STORE_FAILURE, Place.RECEIVED, 1, lag_ms=300))
ASLEEP = faults(Planned(fault=Fault.SUSPEND, at=at(Place.AFTER_EVENT, 2), settings={"sleep_ms": 3_600_000}))
ANSWERED = faults(
    Planned(fault=Fault.FIN, at=at(Place.AFTER_REQUEST), route="answer"),
    Planned(fault=Fault.KILL, at=at(Place.RECEIVED, 2, run=3), route=None),
)
ALL = (*KILLS.values(), SHOWN, *FAILURES.values(), ARMED, LATE, ASLEEP, ANSWERED)


@pytest.fixture(scope="module")
def cases():
    return played(*ALL, seed=3)


@pytest.mark.parametrize("schedule", ALL, ids=lambda schedule: schedule.id)
def test_our_client_breaks_no_law_whatever_comes_inside_of_it(schedule, cases):
    """Every fault came, each event was shown, and each run's end was told in the end."""
    case = cases[schedule.id]
    assert case.verdict.word == "valid", case.verdict.sentence()
    assert case.verdict.fired == case.verdict.planned == len(schedule.faults)
    (finished,) = [record for record in case.history.of(Finished) if record.status != "paused"]
    shown = {record.id for record in case.history.of(Delivered) if record.run == finished.run}
    assert shown == {record.id for record in case.history.of(Logged) if record.run == finished.run}


def of_event(case, number, kind):
    """Return the lives in which the third event had a record of this kind, in order."""
    names = {(record.id, record.cursor) for record in case.history.of(Logged) if record.sequence == number}
    (both,) = names
    return [record.life for record in case.history.of(kind) if record.id in both]


@pytest.mark.parametrize("place", KILLS)
def test_a_kill_comes_exactly_at_its_instant(place, cases):
    """What had happened to the third event in the first life, and what is left of it for the second."""
    case = cases[KILLS[place].id]
    assert [record.life for record in case.history.of(Died)] == [1]
    committed = [each for record in case.history.of(Committed) for each in [record] if record.life == 1]
    assert len(committed) == (1 if place is Place.RECEIVED else 2), "one commit before the FIN, one behind it"
    shown = {Place.RECEIVED: [2], Place.COMMITTED: [2], Place.APPLIED: [1], Place.ACKNOWLEDGED: [1]}[place]
    assert of_event(case, 3, Delivered) == shown
    assert of_event(case, 3, Applied)[0] == shown[0]
    assert of_event(case, 3, Acked) == ([1] if place is Place.ACKNOWLEDGED else [])


def test_a_kill_behind_a_showing_is_done_inside_where_other_things_are(cases):
    """The mark had not moved: the event is shown again, and marked."""
    case = cases[SHOWN.id]
    assert of_event(case, 3, Delivered) == [1, 2]
    assert of_event(case, 3, Applied) == [2]
    assert next(record.redelivered for record in case.history.of(Delivered) if record.life == 2)


@pytest.mark.parametrize("reason", FAILURES)
def test_a_store_that_fails_is_told_and_nothing_is_shown_that_it_does_not_hold(reason, cases):
    """Two events were shown before; the next process finds the disk well, and goes on behind them."""
    case = cases[FAILURES[reason].id]
    (failed,) = case.history.of(Store)
    (told,) = case.history.of(Surfaced)
    assert (failed.did, told.what, told.reason) == ("failed", "error", "commit_failed")
    assert failed.n < told.n
    assert len([record for record in case.history.of(Delivered) if record.life == 1]) == 2
    assert not any(record.redelivered for record in case.history.of(Delivered))
    words = {"full": "no space", "io": "input/output", "locked": "locked"}[reason]
    assert words in failed.reason


def test_a_store_that_lags_is_waited_for(cases):
    """No error, no second life; the events come when they are durable."""
    history = cases[LATE.id].history
    (lagged,) = history.of(Store)
    assert lagged.did == "lagged"
    assert lagged.n < history.of(Committed)[0].n
    assert not history.of(Surfaced)
    assert not history.of(Died)


def test_a_client_that_slept_notices_and_attaches_again(cases):
    """It stands still for half a second; its clocks went on for an hour, and nothing of that hour counts against its patience."""
    history = cases[ASLEEP.id].history
    (slept,) = history.of(CutFired)
    woke = next(record for record in history.of(Said) if "the machine slept" in record.text)
    assert woke.at_ms - slept.at_ms >= 450
    assert not history.of(Surfaced)


def test_what_is_planned_for_the_run_that_goes_on_does_not_come_in_the_one_before(cases):
    """The paused run is followed first, by a process of its own; it lives on."""
    history = cases[ANSWERED.id].history
    (died,) = history.of(Died)
    assert died.life > 1
    assert {record.status for record in history.of(Finished) if record.life < died.life} == {"paused"}


def test_who_shows_before_it_commits_is_found_by_a_kill_between():
    """The third event was shown, and no journal had it: it comes again, and nothing says so. A full disk finds the same."""
    killed, failed = KILLS[Place.RECEIVED], FAILURES["full"]
    cases = played(killed, failed, mutant="deliver-first")
    for schedule in (killed, failed):
        verdict = cases[schedule.id].verdict
        assert set(verdict.broken) == {"I4"}, verdict.sentence()
        assert verdict.fired == 2
        assert of_event(cases[schedule.id], 3, Delivered) == [1, 2]
        assert of_event(cases[schedule.id], 3, Committed) == [2]
    assert not next(record.redelivered for record in cases[killed.id].history.of(Delivered) if record.life == 2)


@pytest.mark.slow
def test_a_right_small_client_breaks_no_law_either():
    """Its whole state is saved at once; it has no confirmation aloud, and no clocks of ours."""
    chosen = [each for each in ALL if each not in (KILLS[Place.ACKNOWLEDGED], ANSWERED)]
    for case in played(*chosen, mutant="right").values():
        assert case.verdict.word == "valid", case.verdict.sentence()
        assert case.verdict.fired == case.verdict.planned


@pytest.mark.slow
def test_any_client_can_be_suspended():
    """By its process group; its clocks are left alone."""
    case = played(ASLEEP, client=f"{sys.executable} -m reattach_chaos.mutants right")[ASLEEP.id]
    assert case.verdict.word == "valid", case.verdict.sentence()
    assert case.verdict.fired == 1


@pytest.mark.slow
def test_a_case_that_the_simulation_saved_is_replayed_on_sockets(tmp_path, monkeypatch, capsys):
    """One schedule for both: there in virtual time, here on sockets, where a Toxiproxy is named."""
    monkeypatch.chdir(tmp_path)
    saved = played_with(KILLS[Place.COMMITTED], "reattach", Bill(simulated=True), "simulation")
    assert [record.cut for record in play_simulated(saved).of(CutFired)] == [1, 2]
    (tmp_path / "saved.json").write_text(dumps(saved))
    assert cli.main(["chaos", "replay", "saved.json", "-q", "--backend", "embedded"]) == 0
    assert capsys.readouterr().out.startswith("VALID.")


def test_a_lag_takes_real_time_and_no_more_than_a_second(monkeypatch):
    """Once: the next write is quick again."""
    slept = []
    monkeypatch.setattr(striker.time, "sleep", slept.append)
    monkeypatch.setattr(striker.Striker, "say", lambda *_, **__: None)
    late = [
        Instant(cut, Fault.STORE_FAILURE, Place.COMMITTED, 1, lag_ms, "full")
        for cut, lag_ms in ((1, 300.0), (2, 60_000.0))
    ]
    watched = striker.Striker(tuple(late))
    watched.write()
    assert slept == []
    watched.meet(Place.COMMITTED, 1)
    watched.write()
    watched.write()
    assert slept == [0.3, 1.0]


def test_an_order_is_one_word_and_read_again():
    """Whatever it says; a process of ours has it as an argument."""
    order = Instants(instants_of(FAILURES["io"], 1), "clock file")
    assert order.faults == (Instant(2, Fault.STORE_FAILURE, Place.RECEIVED, 3, 0.0, "io"),)
    assert read_word(order.word()) == order
    assert instants_of(FAILURES["io"], 2) == ()


@pytest.mark.parametrize(
    ("schedule", "inside"),
    [
        (faults(FIN), False),
        (faults(own(Fault.KILL, Place.DELIVERED, 1)), False),
        (SHOWN, True),
        (ASLEEP, True),
        (LATE, True),
    ],
)
def test_what_every_client_can_be_done_to_needs_no_process_of_ours(schedule, inside):
    """A kill behind a line, and what happens on the wire."""
    assert are_inside(schedule) is inside
