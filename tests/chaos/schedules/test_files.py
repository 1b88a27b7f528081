import json

import pytest

from reattach_chaos.schedules import Fault, Place, Planned, Schedule, ScheduleError, at, dumps, loads

GOOD = {
    "reattach": "schedule/1",
    "id": "rst-after-event-7",
    "seed": 7,
    "scenario": "session",
    "faults": [{"fault": "rst", "at": {"place": "after-event", "event": 7}}],
}


def changed(path, value):
    """Return the good schedule's text with one member changed."""
    whole = json.loads(json.dumps(GOOD))
    *way, last = path
    here = whole
    for step in way:
        here = here[step]
    here[last] = value
    return json.dumps(whole)


def test_a_small_schedule_reads_as_it_looks():
    """What is left out has its default: the first stream, once, downstream."""
    schedule = loads(json.dumps(GOOD))
    assert schedule.faults == (Planned(fault=Fault.RST, at=at(Place.AFTER_EVENT, 7)),)
    assert (schedule.id, schedule.seed) == ("rst-after-event-7", 7)


def test_what_is_written_is_what_is_read():
    """With every member set."""
    schedule = Schedule(
        id="all",
        seed=2**40,
        scenario={"name": "inline", "steps": []},
        faults=(
            Planned(
                fault=Fault.STALL, at=at("in-character", 3, run=2, width=4), nth="every", times=2, direction="both"
            ),
            Planned(fault=Fault.BUSY, at=at("after-request"), route="create", settings={"status": 503}),
            Planned(fault=Fault.KILL, at=at("committed", 5), route=None),
            Planned(fault=Fault.FIN, at=at("offset", offset=0)),
        ),
        client={"mode": "start"},
        server={"retention_events": 5},
        versions={"reattach": "0.1.0"},
        requirements="2027-01",
    )
    assert loads(dumps(schedule)) == schedule


FAULT = ("faults", 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "schedule: must be an object, is []"),
        ("{}", "reattach: must be 'schedule/1', is None"),
        (changed(("reattach",), "schedule/2"), "reattach: must be 'schedule/1', is 'schedule/2'"),
        (changed(("colour",), "red"), "schedule: has no member 'colour'; known are reattach, id"),
        (changed(("id",), ""), "id: must be a text, is ''"),
        (changed(("seed",), -1), "seed: must be a whole number from 0 to 18446744073709551615, is -1"),
        (changed(("seed",), True), "seed: must be a whole number from 0 to 18446744073709551615, is True"),
        (changed(("scenario",), 7), "scenario: must be a name or a script, is 7"),
        (changed(("faults",), {}), "faults: must be a list of at most"),
        (changed(("client",), []), "client: must be an object, is []"),
        (changed((*FAULT, "fault"), "fire"), "faults[0].fault: must be one of fin, rst, stall"),
        (changed((*FAULT, "at"), None), "faults[0].at: must be an object, is None"),
        (changed((*FAULT, "at", "place"), "nowhere"), "faults[0].at.place: must be one of connecting"),
        (changed((*FAULT, "at", "event"), 0), "faults[0].at.event: must be a whole number from 1 to 1000000, is 0"),
        (changed((*FAULT, "at"), {"place": "after-event"}), "faults[0]: the place 'after-event' takes an event"),
        (changed((*FAULT, "at", "width"), 3), "faults[0]: a width goes with the place 'in-character'"),
        (changed((*FAULT, "at", "offset"), 3), "faults[0]: an offset goes with the place 'offset'"),
        (
            changed((*FAULT, "route"), "status"),
            "faults[0]: the place 'after-event' is one of a stream, not of 'status'",
        ),
        (changed((*FAULT, "route"), None), "faults[0]: the place 'after-event' takes a route"),
        (changed((*FAULT, "nth"), "often"), "faults[0].nth: must be a whole number from 1 to 1000, is 'often'"),
        (changed((*FAULT, "direction"), "upstream"), "is not one of the direction 'upstream'"),
        (changed((*FAULT, "settings"), {"x": 1}), "faults[0].settings: has no member 'x'; known are none"),
        (
            changed(FAULT, {"fault": "kill", "at": {"place": "idle", "event": 1}}),
            "the fault 'kill' has no place 'idle'",
        ),
        (
            changed(FAULT, {"fault": "empty", "at": {"place": "after-request"}, "route": "status"}),
            "the fault 'empty' is one of a stream, not of 'status'",
        ),
        (
            changed(FAULT, {"fault": "fin", "at": {"place": "in-request-body"}, "direction": "upstream"}),
            "a request of route 'stream' has no body",
        ),
        (
            changed(
                FAULT,
                {
                    "fault": "server-restart",
                    "at": {"place": "appended", "event": 1},
                    "route": None,
                    "settings": {"signal": 9},
                },
            ),
            "faults[0].settings.signal: must be one of term, kill; is 9",
        ),
        (
            changed(FAULT, {"fault": "latency", "at": {"place": "connecting"}, "settings": {"delay_ms": -1}}),
            "faults[0].settings.delay_ms: must be a whole number from 0 to 86400000, is -1",
        ),
    ],
)
def test_what_is_no_schedule_is_refused_with_its_place(text, words):
    """Who wrote it by hand learns where to look."""
    with pytest.raises(ScheduleError) as caught:
        loads(text)
    assert words in str(caught.value)
