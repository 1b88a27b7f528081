"""A schedule that carries its script, or settings of the client and the server, is played with them."""

import json
from dataclasses import replace

import pytest

from chaos_cases import SESSION, faults, played
from reattach.cli import main
from reattach_chaos.cases.client import CommandClient, OwnClient
from reattach_chaos.cases.errands import objection_to
from reattach_chaos.cases.recipe import bill_of, played_with
from reattach_chaos.cases.theatre import Bill
from reattach_chaos.history import CutFired, Finished, Logged, Snapshot, Surfaced
from reattach_chaos.schedules import Fault, Place, Planned, ScheduleError, at
from reattach_chaos.schedules.files import dumps, loads
from reattach_mockserver.scenarios.parse import load_script

SCRIPT = {"reattach": "scenario/1", "steps": [{"say": "one two three four"}, {"end": "completed"}]}
PLACE = at(Place.AFTER_EVENT, 2)
EXPIRED = (
    Planned(fault=Fault.EXPIRE, at=PLACE, settings={"keep": 1}),
    Planned(fault=Fault.FIN, at=PLACE),
)
SIMULATED = faults(client={"client": "reattach", "mode": "simulated"}, seed=9)


def saved(schedule):
    """Return a schedule as its file has it."""
    return loads(dumps(schedule))


@pytest.fixture(scope="module")
def cases():
    """One after the other would take three stages: all of them are of one script."""
    plain = saved(faults(Planned(fault=Fault.FIN, at=PLACE), scenario=SCRIPT))
    lines = saved(replace(faults(Planned(fault=Fault.RST, at=PLACE), scenario=SCRIPT), server={"line_end": "crlf"}))
    gaps = {
        word: saved(replace(faults(*EXPIRED, scenario=SCRIPT), client={"on_gap": word}, id=f"on-gap-{word}"))
        for word in ("raise", "snapshot", "continue")
    }
    bill = bill_of(plain, Bill())
    found = played(plain, lines, *gaps.values(), script=bill.script)
    return {"plain": found[plain.id], "lines": found[lines.id], **{word: found[each.id] for word, each in gaps.items()}}


def test_a_schedules_own_script_is_what_the_server_plays(cases):
    """Not the session's: one run, with the events that it says."""
    case = cases["plain"]
    assert case.verdict.word == "valid", case.verdict.sentence()
    types = [each.type for each in case.history.of(Logged)]
    assert types[0] == "run.created"
    assert "tool.call" not in types
    assert types[-1] == "run.completed"


def test_line_ends_are_those_that_the_schedule_asks_for(cases):
    """What stands around the cut ends with both characters."""
    case = cases["lines"]
    assert case.verdict.word == "valid", case.verdict.sentence()
    (fired,) = case.history.of(CutFired)
    assert "0d 0a 0d 0a" in fired.around


@pytest.mark.parametrize(("word", "told"), [("raise", 2), ("snapshot", 1), ("continue", 1)])
def test_our_client_does_at_a_gap_what_the_schedule_says(cases, word, told):
    """It stops with an error behind the gap, takes the server's state, or goes on at the oldest event kept."""
    case = cases[word]
    assert case.verdict.word == "valid", case.verdict.sentence()
    assert len(case.history.of(Surfaced)) <= told
    assert bool(case.history.of(Finished)) == (word != "raise")
    assert bool(case.history.of(Snapshot)) == (word == "snapshot")


@pytest.mark.slow
def test_a_scenarios_file_is_saved_with_the_case(tmp_path, monkeypatch, capsys):
    """So the case outlives the file, and its name: what is written is what is read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(json.dumps(SCRIPT))
    words = ["chaos", "run", "-q", "--backend", "embedded", "--scenario", "mine.yaml", "--client"]
    words.append("""echo '{"kind":"rendered","id":"x"}'""")
    assert main([*words, "--only", "fin-after-event-2", "--faults", "stall", "--json"]) == 1
    file = next((tmp_path / ".reattach" / "chaos" / "7").glob("*-event-2*.json"))
    (tmp_path / "mine.yaml").unlink()
    script = bill_of(loads(file.read_text()), Bill()).script
    (tmp_path / "again.json").write_text(json.dumps(script))
    assert load_script(tmp_path / "again.json").name == "mine"
    capsys.readouterr()
    assert main(["chaos", "replay", str(file), "-q", "--backend", "embedded", "--json"]) == 1


def test_what_is_named_on_the_command_line_goes_before_the_script():
    """As before a scenario's name."""
    held = saved(faults(scenario=SCRIPT))
    assert bill_of(held, Bill()).script == SCRIPT
    assert bill_of(held, Bill(scenario="tools")).script is None
    assert played_with(faults(), "reattach", Bill(script=SCRIPT), "").scenario == SCRIPT


def test_a_server_that_runs_cannot_be_given_a_script():
    with pytest.raises(ScheduleError, match="is not ours to start"):
        bill_of(faults(scenario=SCRIPT), Bill(target="http://127.0.0.1:9"))


@pytest.mark.parametrize("named", [{"backend": "embedded"}, {"client": "./mine.sh"}, {"mutant": "right"}])
def test_a_case_of_the_simulation_is_played_on_sockets_where_something_of_theirs_is_named(named):
    """Else where it was found: in memory."""
    assert bill_of(SIMULATED, Bill()).simulated
    bill = bill_of(SIMULATED, Bill(**named))
    assert (bill.simulated, bill.mode, bill.seed) == (False, "follow", 9)


@pytest.mark.parametrize(
    ("client", "own", "words"),
    [
        (OwnClient(None, None), True, ""),
        (CommandClient("true"), True, "the client takes no setting on_gap"),
        (OwnClient(None, None), False, "a server of ours"),
    ],
)
def test_who_cannot_obey_a_setting_is_not_asked(client, own, words):
    """Half an order obeyed would be another case."""
    schedule = faults(client={"on_gap": "raise"}, server={"line_end": "crlf"})
    assert words in objection_to(schedule, SESSION, client, "follow", kill=True, own=own)
    assert (objection_to(schedule, SESSION, client, "follow", kill=True, own=own) == "") == (words == "")
