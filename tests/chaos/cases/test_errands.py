"""What a client is asked to do for a schedule, and what cannot be played at all."""

import re
from pathlib import Path

import pytest

from chaos_cases import SESSION, faults
from reattach_chaos import cases
from reattach_chaos.cases.client import CommandClient, Errand, MutantClient, OwnClient
from reattach_chaos.cases.errands import Part, objection_to, parts_of
from reattach_chaos.schedules import Fault, Place, Planned, at

OWN = OwnClient(None, None)
SMALL = MutantClient("right", None)
FOREIGN = CommandClient("true")
STARTING = CommandClient("true", "start")


def cut(run=1, route="stream", place=Place.AFTER_REQUEST, event=None, fault=Fault.FIN):
    return Planned(fault=fault, at=at(place, event, run=run), route=route)


@pytest.mark.parametrize(
    ("planned", "parts"),
    [
        ([], [Part(1, "follow"), Part(2, "follow"), Part(3, "follow")]),
        ([cut(run=2)], [Part(2, "follow")]),
        ([cut(run=3), cut(run=1)], [Part(1, "follow"), Part(3, "follow")]),
        ([cut(route="create")], [Part(1, "start")]),
        ([cut(route="answer")], [Part(3, "answer")]),
        ([cut(route="status")], [Part(3, "answer")]),
        ([cut(route="list"), cut(run=2)], [Part(1, "list"), Part(2, "follow")]),
        ([cut(route="cancel"), cut(run=1)], [Part(1, "cancel")]),
    ],
)
def test_only_what_the_faults_are_about_is_played(planned, parts):
    """A run that no fault is about costs time and proves nothing; without faults it is all of them."""
    assert parts_of(faults(*planned), SESSION, "follow") == parts


def test_a_client_that_starts_its_run_has_one():
    assert parts_of(faults(cut(run=3)), SESSION, "start") == [Part(1, "start")]


@pytest.mark.parametrize(
    ("planned", "client", "mode", "words"),
    [
        (cut(), OWN, "follow", ""),
        (cut(route="list"), OWN, "follow", ""),
        (cut(route="list"), FOREIGN, "follow", "the client makes no request of route list"),
        (cut(route="create"), FOREIGN, "follow", "the client makes no request of route create"),
        (cut(route="create"), STARTING, "start", ""),
        (cut(run=2), STARTING, "start", "a client that starts its run has one"),
        (cut(run=4), OWN, "follow", "the session has 3 runs"),
        (cut(place=Place.AFTER_EVENT, event=9), OWN, "follow", "run 1 has 4 events"),
        (cut(route=None, place=Place.COMMITTED, event=1, fault=Fault.KILL), OWN, "follow", ""),
        (cut(route=None, place=Place.COMMITTED, event=1, fault=Fault.KILL), FOREIGN, "follow",
         "a client is killed when it has shown an event; what it does inside is not seen"),
        (cut(route=None, place=Place.COMMITTED, event=1, fault=Fault.STORE_FAILURE), FOREIGN, "follow",
         "store failed: what a client does inside is not seen"),
        (cut(route=None, place=Place.ACKNOWLEDGED, event=1, fault=Fault.KILL), SMALL, "follow",
         "mutant right has no instant 'acknowledged'"),
        (cut(place=Place.IDLE, event=1, fault=Fault.SUSPEND), FOREIGN, "follow", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_played_says_why(planned, client, mode, words):
    """A case that never fires is never known, so it is not begun."""
    assert objection_to(faults(planned), SESSION, client, mode, kill=True) == words


def test_clients_are_killed_only_where_that_was_asked_for():
    kill = faults(cut(route=None, place=Place.DELIVERED, event=1, fault=Fault.KILL))
    assert objection_to(kill, SESSION, OWN, "follow", kill=True) == ""
    assert objection_to(kill, SESSION, OWN, "follow", kill=False) == "clients are killed with --kill only"


def test_what_only_ours_see_needs_no_word():
    """It is known of them that they go on after a kill."""
    kill = faults(cut(route=None, place=Place.RECEIVED, event=1, fault=Fault.KILL))
    assert objection_to(kill, SESSION, OWN, "follow", kill=False) == ""


def test_the_readme_names_all_that_a_client_is_told():
    """Who writes a client reads the table, and no code of ours."""
    page = Path(cases.__file__).with_name("README.md").read_text()
    table = page.partition("| the environment |")[2].partition("\n\n")[0]
    told = {"task": "follow", "url": "", "run": "", "token": "", "state": Path(), "types": (), "case": ""}
    errands = [Errand(**told | {"task": task}, timeout_s=1.0, heartbeat_s=1.0) for task in ("follow", "start")]
    names = {name for errand in errands for name in errand.env(1) if name.startswith("REATTACH_")}
    assert set(re.findall("`(REATTACH_[A-Z_]+)`", table)) == names
