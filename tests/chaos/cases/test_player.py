"""Cases on real sockets, with our own client: everything that it can be asked to do, cut, and killed."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from chaos_cases import faults, played
from reattach_chaos.cases.player import TRIES, Player
from reattach_chaos.cases.theatre import Bill, theatre
from reattach_chaos.checkers import CaseVerdict, Invalid
from reattach_chaos.history import Counts, Created, CutFired, Delivered, Died, Finished, History, Logged, Request
from reattach_chaos.report import Played
from reattach_chaos.schedules import Fault, Place, Planned, at
from reattach_chaos.toxiproxy.control import InfrastructureError

NOTHING = faults()
CUT = faults(
    Planned(fault=Fault.FIN, at=at(Place.AFTER_EVENT, 2)),
    Planned(fault=Fault.RST, at=at(Place.BEFORE_BLANK_LINE, 4), nth=2),
)
KILLED = faults(
    Planned(fault=Fault.STALL, at=at(Place.AFTER_EVENT, 3)),
    Planned(fault=Fault.KILL, at=at(Place.DELIVERED, 3), route=None),
)
ROUTES = {
    route: faults(Planned(fault=Fault.FIN, at=at(Place.AFTER_REQUEST), route=route))
    for route in ("create", "status", "list", "cancel", "answer")
}


@pytest.fixture(scope="module")
def cases():
    return played(NOTHING, CUT, KILLED, *ROUTES.values(), seed=3)


def test_a_session_without_faults_is_shown_whole(cases):
    """Three runs, each event of them once, in order, and the three ends."""
    case = cases[NOTHING.id]
    assert case.verdict.word == "valid", case.verdict.sentence()
    shown = [record.id for record in case.history.of(Delivered)]
    assert shown == [record.id for record in case.history.of(Logged)]
    assert [record.status for record in case.history.of(Finished)] == ["completed", "paused", "failed"]


def test_a_client_that_knows_one_run_is_never_shown_anothers_memory():
    """Each run of a case is followed with a state of its own: the small client saves its events under no run's name."""
    case = played(NOTHING, mutant="right")[NOTHING.id]
    assert case.verdict.word == "valid", case.verdict.sentence()


def test_cuts_come_where_they_were_planned_and_nothing_is_lost(cases):
    case = cases[CUT.id]
    assert case.verdict.word == "valid", case.verdict.sentence()
    fired = [(record.fault, record.position, record.sequence) for record in case.history.of(CutFired)]
    assert fired == [("fin", "after-event", 2), ("rst", "before-blank-line", 4)]


def test_a_killed_client_goes_on_in_its_next_life(cases):
    """The kill comes right after the event was shown; what comes again is marked."""
    case = cases[KILLED.id]
    assert case.verdict.word == "valid", case.verdict.sentence()
    died = next(record for record in case.history.of(Died))
    first = [record.id for record in case.history.of(Delivered) if record.life == 1]
    second = [record for record in case.history.of(Delivered) if record.life == 2]
    assert died.life == 1
    assert len(first) == 3
    assert len({*first, *(record.id for record in second)}) == 9
    assert all(record.redelivered == (record.id in first) for record in second)


@pytest.mark.parametrize("route", ROUTES)
def test_each_kind_of_request_is_made_and_its_lost_answer_survived(route, cases):
    """Our own client is asked to do what makes the request."""
    case = cases[ROUTES[route].id]
    assert case.verdict.word == "valid", case.verdict.sentence()
    assert len([record for record in case.history.of(Request) if record.route == route]) >= 2


def test_a_lost_create_makes_one_run(cases):
    """B44: the answer is dropped after the commit; same key, same run. Counted on the server, past the gate."""
    assert len(cases[ROUTES["create"].id].history.of(Created)) == 1


def test_what_the_server_did_is_compared_with_the_clean_pass(cases):
    """Events and effects, so that watching cannot make work unseen."""
    counted = {record.of: (record.events, record.calls) for record in cases[CUT.id].history.of(Counts)}
    assert counted["case"] == counted["twin"] == (9, 1)


def test_a_case_whose_toxiproxy_fails_is_unknown_and_says_why():
    """Infrastructure is never a verdict, nor a crash: the run goes on with the next case."""

    @asynccontextmanager
    async def broken():
        raise InfrastructureError("the proxy is gone")
        yield

    async def play():
        async with theatre(Bill(backend="embedded", client="true")) as stage:
            return await Player(replace(stage.player.stage, actuator=broken)).play(CUT)

    verdict = asyncio.run(play()).verdict
    assert (verdict.word, verdict.case) == ("unknown", CUT.id)
    assert "the proxy is gone" in verdict.sentence()


LOST = CaseVerdict(case=CUT.id, rulings={"I1": Invalid(anomaly="lost", sentence="event 1 was never shown", witness=())})


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [
        ([replace(LOST, trouble="the port was taken"), CaseVerdict(case=CUT.id)], "valid"),
        ([replace(LOST, trouble="the port was taken"), LOST], "invalid"),
        ([replace(LOST, trouble="not HTTP")] * TRIES, "invalid"),
        ([LOST], "invalid"),
        ([CaseVerdict(case=CUT.id, trouble="the proxy is gone"), CaseVerdict(case=CUT.id)], "valid"),
    ],
)
def test_what_is_broken_beside_a_trouble_is_played_again(verdicts, word):
    """The client may have hung because our proxy did; what comes again, or without a trouble, is its own."""
    left = list(verdicts)

    class Scripted(Player):
        async def _once(self, schedule, notes=None):
            return Played(schedule=schedule, history=History([]), verdict=left.pop(0))

    assert asyncio.run(Scripted(None).play(CUT)).verdict.word == word
    assert not left
