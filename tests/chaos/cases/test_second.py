"""A second process on the same state while the first lives: one of them applies, and a client without a lease is found."""

import asyncio
from dataclasses import replace

import pytest

from chaos_cases import SESSION, faults
from reattach_chaos.cases.client import CommandClient, MutantClient, OwnClient
from reattach_chaos.cases.errands import objection_to
from reattach_chaos.cases.player import Player
from reattach_chaos.cases.terms import Terms
from reattach_chaos.cases.theatre import Bill, theatre
from reattach_chaos.history import CutFired, Delivered, Finished, Said
from reattach_chaos.schedules import Fault, Place, Planned, at
from reattach_chaos.schedules.files import dumps, loads

SILENCE = Planned(fault=Fault.STALL, at=at(Place.AFTER_EVENT, 2))


def second(place, event):
    return Planned(fault=Fault.SECOND_CLIENT, at=at(place, event), route=None)


HELD = faults(SILENCE, second(Place.DELIVERED, 2))
OF_SIM = loads(dumps(faults(second(Place.COMMITTED, 3), second(Place.APPLIED, 9))))
NEVER = faults(SILENCE, second(Place.DELIVERED, 10))


@pytest.fixture(scope="module")
def cases():
    """Three clients on one stage."""

    async def play():
        async with theatre(Bill(backend="embedded", seed=3, heartbeat_ms=1_000.0)) as stage:
            own, nursery = stage.player, stage.client._nursery
            small = {
                name: Player(
                    replace(
                        own.stage,
                        client=MutantClient(name, nursery),
                        terms=Terms(marks=True, timeout_s=30, heartbeat_ms=1_000.0),
                    )
                )
                for name in ("right", "two-appliers")
            }
            told = [own.play(each) for each in (HELD, OF_SIM, NEVER)] + [each.play(HELD) for each in small.values()]
            return dict(zip(("held", "sim", "never", *small), await asyncio.gather(*told), strict=True))

    return asyncio.run(play())


def test_our_second_process_is_refused_and_the_first_loses_nothing(cases):
    """The first holds the lease while its stream is silent; each event is shown once, by the first."""
    case = cases["held"]
    assert case.verdict.word == "valid", case.verdict.sentence()
    assert case.verdict.fired == case.verdict.planned == 2
    (fired,) = [each for each in case.history.of(CutFired) if each.fault == "second-client"]
    assert (fired.life, fired.sequence) == (2, 2)
    assert {each.life for each in case.history.of(Delivered)} == {1}
    assert "the second client: run_busy" in [each.text for each in case.history.of(Said)]
    assert len(case.history.of(Finished)) == 1


def test_a_file_of_the_simulation_with_second_clients_is_played_on_sockets(cases):
    """One before, and one behind the end of the first: whatever of the first's instants is meant, both come."""
    case = cases["sim"]
    assert case.verdict.word == "valid", case.verdict.sentence()
    assert [each.fault for each in case.history.of(CutFired)] == ["second-client"] * 2
    assert len(case.history.of(Delivered)) == 9


def test_a_second_client_whose_event_never_came_is_not_known(cases):
    """Nothing was proven, so it is no pass."""
    assert cases["never"].verdict.word == "unknown"
    assert cases["never"].verdict.fired == 1


def test_whoever_takes_the_store_over_goes_on_alone(cases):
    """The small right client takes over at its start; the first finds itself fenced, and shows nothing more."""
    case = cases["right"]
    assert case.verdict.word == "valid", case.verdict.sentence()
    lives = [each.life for each in case.history.of(Delivered)]
    assert lives[:2] == [1, 1]
    assert set(lives[2:]) == {2}


def test_two_appliers_are_found(cases):
    """Both show what is left, so that all of it is shown twice: I2, and no other law."""
    assert set(cases["two-appliers"].verdict.broken) == {"I2"}


def test_who_tells_of_no_lease_is_not_held_to_one():
    """The contract of clients says nothing of two processes on one state."""
    assert "only ours know of a lease" in objection_to(HELD, SESSION, CommandClient("true"), "follow", kill=True)
    assert objection_to(HELD, SESSION, OwnClient(None, None), "follow", kill=False) == ""
