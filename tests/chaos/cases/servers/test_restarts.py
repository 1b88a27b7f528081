"""A server that ends and comes again: our client goes on and loses nothing, and nothing of the server stays behind."""

import asyncio
import json

import pytest

from chaos_cases import SESSION, faults
from reattach_chaos.cases.chains import steps_of
from reattach_chaos.cases.client import CommandClient, OwnClient
from reattach_chaos.cases.errands import Part, objection_to, parts_of
from reattach_chaos.cases.reach import unreached
from reattach_chaos.cases.servers.control import Control, ServerTrouble
from reattach_chaos.cases.servers.own_server import begun, needs_own
from reattach_chaos.cases.servers.server_steps import Step, Steps
from reattach_chaos.cases.theatre import Bill, theatre
from reattach_chaos.history import Created, Delivered, Effect, Logged, Server
from reattach_chaos.schedules import Fault, Place, Planned, at
from reattach_chaos.schedules.files import dumps, loads

OWN = OwnClient(None, None)
BEFORE = Planned(fault=Fault.FIN, at=at(Place.AFTER_EVENT, 2))


def restart(place, event=None, signal="kill", route="stream", nth=1, run=1, **settings):
    return Planned(
        fault=Fault.SERVER_RESTART,
        at=at(place, event, run=run),
        route=route,
        nth=nth,
        settings={"signal": signal, "down_ms": 50} | settings,
    )


KILLED = faults(restart(Place.AFTER_EVENT, 3))
ENDED = faults(restart(Place.AFTER_EVENT, 3, "term"))
CREATE = faults(restart(Place.AFTER_REQUEST, route="create"))
TWICE = faults(BEFORE, restart(Place.IN_BACKOFF, nth=2), restart(Place.AFTER_EVENT, 5, "term", nth=3))
OF_SIM = loads(dumps(faults(restart(Place.IDLE, 2))))
STEPS = loads(dumps(faults(restart(Place.APPENDED, 3, route=None), restart(Place.PUBLISHED, 8, "term", route=None))))
ANSWERED = faults(restart(Place.EXECUTED, 2, route=None, run=3))
LINE_ENDS = faults(Planned(fault=Fault.RST, at=at(Place.IN_LINE_END, 2)))


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """All on one stage, and a server of our own beside them; see the test of it."""

    async def play():
        async with theatre(Bill(backend="embedded", seed=3)) as stage:
            own = asyncio.create_task(one_server(stage.player.stage, tmp_path_factory.mktemp("own")))
            schedules = (KILLED, ENDED, CREATE, TWICE, OF_SIM, STEPS, ANSWERED, LINE_ENDS)
            found = await asyncio.gather(*map(stage.player.play, schedules))
            return {case.id: case for case in found}, await own

    return asyncio.run(play())


async def one_server(whole, folder):
    """Start a run on a server of one's own, kill that, start it again, leave it; return what was seen of the run each time."""
    seen = []
    async with begun(whole.making, KILLED, folder) as server:
        control = Control(whole.http, server.url, "t", server.admin_url)
        run = await control.create({"scenario": "session"}, "k")
        await server.end("kill")
        seen.append(await status(control, run["id"]))
        await server.start()
        seen.append((await control.settled(run["id"], 60.0))["status"])
    seen.append(await status(control, run["id"]))
    return seen


async def status(control, run):
    try:
        return (await control.status(run))["status"]
    except ServerTrouble as trouble:
        return "nobody" if "ConnectError" in str(trouble) else str(trouble)


def test_a_cases_server_keeps_its_ports_and_its_log_and_ends_with_the_case(cases):
    """Killed and started again it knows the run; left, nobody listens there any more."""
    assert cases[1] == ["nobody", "completed", "nobody"]


@pytest.mark.parametrize(
    ("schedule", "did"),
    [
        (KILLED, ["killed", "started"]),
        (ENDED, ["stopped", "started"]),
        (CREATE, ["killed", "started"]),
        (TWICE, ["killed", "started", "stopped", "started"]),
        (OF_SIM, ["killed", "started"]),
        (STEPS, ["killed", "started", "stopped", "started"]),
        (ANSWERED, ["killed", "started"]),
        (LINE_ENDS, []),
    ],
    ids=["killed", "ended", "create", "twice", "sim", "steps", "answered", "line-ends"],
)
def test_a_client_goes_on_with_a_server_that_has_come_again(cases, schedule, did):
    """All that was planned came, what the server did is in the history, no law is broken, each event was shown once."""
    case = cases[0][schedule.id]
    assert case.verdict.word == "valid", case.verdict.sentence()
    assert case.verdict.fired == case.verdict.planned
    assert [each.did for each in case.history.of(Server)] == did
    events = [each for each in case.history.of(Logged) if each.run == case.history.of(Delivered)[-1].run]
    assert len([each for each in case.history.of(Delivered) if each.run == events[0].run]) == len(events)


def test_a_create_that_a_death_left_without_an_answer_makes_one_run(cases):
    """And its work is done once, whichever of the two servers did it."""
    assert len(cases[0][CREATE.id].history.of(Created)) == 1
    assert len(cases[0][CREATE.id].history.of(Effect)) == 1


def test_only_a_server_of_ours_is_restarted():
    """Nobody restarts a server that is named; at its own steps a client must be in the middle of making the run."""
    assert objection_to(KILLED, SESSION, OWN, "follow", kill=False) == ""
    assert "a server of ours only" in objection_to(KILLED, SESSION, OWN, "follow", kill=False, own=False)
    inside = faults(restart(Place.APPENDED, 2, route=None))
    assert objection_to(inside, SESSION, OWN, "follow", kill=False) == ""
    assert "no request of route create" in objection_to(inside, SESSION, CommandClient("x"), "follow", kill=False)
    assert objection_to(inside, SESSION, CommandClient("x", "start"), "start", kill=False) == ""


def test_the_runs_that_the_client_makes_come_behind_all_that_are_made_for_it():
    """The server knows them by their numbers, in the order in which it makes them."""
    planned = (restart(Place.APPENDED, 2, route=None, run=3), restart(Place.RECORDED, 1, route=None), BEFORE)
    schedule = faults(*planned, Planned(fault=Fault.FIN, at=at(Place.AFTER_EVENT, 1, run=2)))
    parts = parts_of(schedule, SESSION, "follow")
    assert parts == [Part(1, "start"), Part(3, "answer"), Part(2, "follow")]
    steps = [Step(1, Place.APPENDED, 4, 2), Step(2, Place.RECORDED, 3, 1)]
    assert list(steps_of(schedule, parts, SESSION)) == steps
    assert [Step.of(str(each)) for each in steps] == steps


def test_a_server_stands_still_at_the_step_of_the_event_or_of_its_batch(capsys):
    """Once, and in no other run; what comes without a wait between is appended together."""

    async def play():
        seen = []

        async def number(run):
            return {"a": 1}.get(run, 2)

        async def until():
            seen.append(len(seen))

        fives = [Step(1, Place.APPENDED, 1, 5), Step(3, Place.APPENDED, 1, 6)]
        steps = Steps([*fives, Step(2, Place.EXECUTED, 1, 3)], number, until)
        hooks = steps.hooks()
        await hooks.created("a", 1)
        await hooks.durable("b", 9)
        assert seen == []
        await hooks.reached("a", "append x y")
        await hooks.appending("a", 1)
        assert seen == [0], "the batch has the third event"
        await hooks.durable("a", 3)
        await hooks.woken("a", 7)
        assert seen == [0]
        await hooks.durable("a", 7)
        await hooks.durable("a", 8)
        assert seen == [0, 1], "each comes once, two of one batch at once"

    asyncio.run(play())
    assert [json.loads(line)["cut"] for line in capsys.readouterr().out.splitlines()] == [2, 1, 3]


def test_a_case_has_a_server_of_its_own_where_it_would_be_everybodys():
    """Restarts, and line ends of two characters; all others share one."""
    assert [needs_own(each) for each in (KILLED, LINE_ENDS, faults(BEFORE))] == [True, True, False]


def test_a_restart_ends_the_stream_so_that_a_resume_comes():
    """Not behind the last event: what comes there ends nothing that is asked for again."""
    resumed = Planned(fault=Fault.RST, at=at(Place.AFTER_EVENT, 3), nth=2)
    assert unreached(faults(restart(Place.AFTER_EVENT, 1), resumed), SESSION) == ""
    assert "so many streams" in unreached(faults(restart(Place.AFTER_EVENT, 4), resumed), SESSION)
