"""When an errand begins again, by what its process said; processes by script, so that nothing here takes time."""

import asyncio
import json
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos_cases import faults
from reattach_chaos.cases.client import CommandClient, Errand, MutantClient, OwnClient
from reattach_chaos.cases.running import Running
from reattach_chaos.history import CutFired, CutMissed, Died, Exited, Finished, Recorder, Said, Store
from reattach_chaos.schedules import Fault, Place, Planned, at

FAILS = faults(Planned(fault=Fault.STORE_FAILURE, at=at(Place.RECEIVED, 1), route=None, settings={"reason": "io"}))
DIES = faults(
    Planned(fault=Fault.KILL, at=at(Place.COMMITTED, 1), route=None),
    Planned(fault=Fault.KILL, at=at(Place.COMMITTED, 2, run=2), route=None),
)
FAILED = {"kind": "struck", "cut": 1, "did": "failed"}
KILLED = {"kind": "struck", "cut": 1, "did": "killed"}
ERROR = {"kind": "error", "code": "commit_failed"}
FINISHED = {"kind": "finished", "status": "completed"}


class Script:
    """A process that says its lines and ends."""

    def __init__(self, lines, code):
        self.lines = [json.dumps(line) for line in lines]
        self.end = code

    async def line(self):
        return self.lines.pop(0) if self.lines else None

    async def code(self):
        return self.end

    def signal(self, word):
        raise AssertionError(f"nobody was to be sent {word!r}")


def played(schedule, client, *lives, task="follow"):
    """Let an errand of these lives run; return its history, and how each process was ordered."""
    ordered = []
    left = list(lives)

    async def start(errand, step, attempt):
        ordered.append((step, attempt, errand.inside))
        return Script(*left.pop(0))

    async def play():
        recorder = Recorder()
        client.start = start
        running = Running(client, recorder, SimpleNamespace(life=1), schedule, 60.0)
        errand = Errand(
            task=task,
            url="",
            run="r",
            token="",
            state=Path("state"),
            types=(),
            timeout_s=60.0,
            heartbeat_s=1.0,
            case="c",
        )
        await running.errand(errand, 1)
        return recorder.history()

    history = asyncio.run(play())
    assert not left, "it did not begin so often"
    return history, ordered


def test_who_was_told_that_its_store_failed_is_started_again_and_nothing_fails_any_more():
    """By the same errand, with the same state, as the next attempt."""
    history, ordered = played(FAILS, OwnClient(None, None), ([FAILED, ERROR], 3), ([FINISHED], 0))
    assert [(step, attempt, len(inside.faults)) for step, attempt, inside in ordered] == [(0, 1, 1), (0, 2, 0)]
    assert [(record.did, record.reason) for record in history.of(Store)] == [("failed", "input/output error")]
    assert [record.code for record in history.of(Exited)] == [3, 0]
    assert not history.of(CutMissed)


@pytest.mark.parametrize("lines", [[FAILED], [FAILED, ERROR, FINISHED]], ids=["silent", "finished"])
def test_who_left_without_a_word_or_has_told_the_end_is_not_started_again(lines):
    """Its user would not know that there is anything to go on with: what is lost by that stays lost, and is judged."""
    history, ordered = played(FAILS, OwnClient(None, None), (lines, 0))
    assert len(ordered) == 1
    assert len(history.of(CutFired)) == 1


def test_a_kill_that_was_said_begins_the_next_life_and_comes_once():
    """That of another run is not ordered here at all."""
    history, ordered = played(DIES, OwnClient(None, None), ([KILLED], -signal.SIGKILL), ([FINISHED], 0))
    assert [[each.cut for each in inside.faults] for _, _, inside in ordered] == [[1], []]
    assert [record.position for record in history.of(CutFired)] == ["committed"]
    assert len(history.of(Died)) == 1


def test_an_instant_that_never_came_is_missed():
    """So that the case is not known, and no pass."""
    history, _ = played(DIES, OwnClient(None, None), ([FINISHED], 0))
    assert [record.cut for record in history.of(CutMissed)] == [1]


def test_nothing_comes_before_the_last_step_of_an_errand():
    """Who answers follows the paused run first, by a process of its own."""
    _, ordered = played(DIES, OwnClient(None, None), ([FINISHED], 4), ([FINISHED], 0), task="answer")
    assert [(step, len(inside.faults)) for step, _, inside in ordered] == [(0, 0), (1, 1)]


@pytest.mark.parametrize(("client", "clock"), [(OwnClient(None, None), "clock"), (MutantClient("right", None), "")])
def test_only_who_takes_clocks_of_ours_is_given_them(client, clock):
    """Another would never say that it has seen their step, and each sleep of it would hold the gate for all the time there is."""
    asleep = faults(Planned(fault=Fault.SUSPEND, at=at(Place.AFTER_EVENT, 2)))
    _, ordered = played(asleep, client, ([FINISHED], 0))
    assert [inside.clock for _, _, inside in ordered] == [clock]


def test_a_strange_client_cannot_say_that_it_was_struck():
    """It is given no order, and such a line is kept as any other that means nothing."""
    history, ordered = played(FAILS, CommandClient("true"), ([FAILED, ERROR], 3))
    assert [inside for _, _, inside in ordered] == [None]
    assert not history.of(CutFired)
    assert "struck" in history.of(Said)[0].text


@pytest.mark.parametrize("client", [OwnClient(None, None), CommandClient("true")], ids=["ours", "foreign"])
@pytest.mark.parametrize(
    "line",
    [
        {"kind": "rendered", "id": "e." + "9" * 5000},
        {"kind": "rendered", "id": "\ud800"},
        {"kind": "struck", "cut": [], "did": {}},
        {"kind": "run", "run": "\ud800"},
        {"kind": "lease", "token": 10**4000},
    ],
    ids=["digits", "surrogate", "struck", "run", "token"],
)
def test_a_strange_line_ends_nothing(client, line):
    """It is heard out to its end, and what it said in order counts."""
    history, _ = played(DIES, client, ([line, FINISHED], 0))
    assert len(history.of(Finished)) == 1
    assert [record.run for record in history.of(Finished)] == ["r"]
