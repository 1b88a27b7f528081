"""`--mutant ID` of a client: the cases that show it are played, and the first line names what it did, as the room's README says."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

import reattach_chaos.mutants
from reattach_chaos import cli
from reattach_chaos.cases import command
from reattach_chaos.cases.client import MutantClient
from reattach_chaos.cases.exposures import EXPOSURES, Exposure
from reattach_chaos.cases.player import Player
from reattach_chaos.cases.recipe import SESSION, bill_of, played_with
from reattach_chaos.cases.theatre import Bill, theatre
from reattach_chaos.checkers import RunVerdict
from reattach_chaos.mutants import KILLED_BY
from reattach_chaos.schedules import dumps, loads
from reattach_mockserver.mutants.registry import SERVER_MUTANTS

WRONG = [name for name in KILLED_BY if name != "right"]
README = Path(reattach_chaos.mutants.__file__).with_name("README.md").read_text(encoding="utf-8")
LINES = dict(re.findall(r"^\| `([\w-]+)` \|.* \| (INVALID: .*) \|$", README, re.MULTILINE))
CHEAP = ("new-key", "swallow-gap", "two-appliers")
"""They take a mode, a server, or a heartbeat, of their own: the command is tried with them in the ordinary run."""
TOGETHER = [name for name in WRONG if replace(EXPOSURES[name], cases=()) == Exposure(cases=())]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def like(name):
    """What the README has of a mutant's first line, as a pattern."""
    return re.compile(re.escape(LINES[name]).replace("…", r"[\w.-]+"))


def bill_for(name, mutant):
    """What a mutant's cases are played with."""
    shown = EXPOSURES[name]
    special = {"wrong": shown.wrong, "heartbeat_ms": shown.heartbeat_ms, "mode": shown.mode, "scenario": shown.scenario}
    return Bill(backend="embedded", mutant=mutant, seed=7, **special)


def found(name, capsys):
    """Play a mutant by its name alone, and hold its first line against the README's."""
    assert cli.main(["chaos", "run", "-q", "--mutant", name, "--backend", "embedded"]) == 1
    told = capsys.readouterr()
    assert like(name).fullmatch(told.out.splitlines()[0]), told.out
    assert f"Only what shows the mutant {name} is played" in told.err


def test_each_wrong_client_has_cases_and_a_line():
    """None is in the table of mutants that nobody can find."""
    assert set(LINES) == set(WRONG) == set(EXPOSURES) - set(SERVER_MUTANTS)


@pytest.mark.parametrize("name", WRONG)
def test_a_case_of_a_wrong_client_is_played_again_with_all_that_shows_it(name):
    """Mode, scenario, server and heartbeat are in the file of the case."""
    bill = bill_for(name, name)
    (case, *_) = EXPOSURES[name].schedules(7, bill.scenario or SESSION)
    saved = loads(dumps(played_with(case, f"mutant {name}", bill, "embedded")))
    assert bill_of(saved, Bill()) == bill


@pytest.fixture(scope="module")
def verdicts():
    """The wrong clients that need nothing special, on one stage."""

    async def play():
        async with theatre(Bill(backend="embedded", mutant="right")) as stage:
            own = stage.player.stage

            async def shown(name):
                client = MutantClient(name, stage.client._nursery)
                player = Player(replace(own, client=client))
                cases = await asyncio.gather(*map(player.play, EXPOSURES[name].schedules(0, SESSION)))
                return RunVerdict(cases=tuple(case.verdict for case in cases))

            return dict(zip(TOGETHER, await asyncio.gather(*map(shown, TOGETHER)), strict=True))

    return asyncio.run(play())


@pytest.mark.parametrize("name", TOGETHER)
def test_what_shows_a_wrong_client_shows_it(name, verdicts):
    """On real sockets: exit 1, the README's line first, and no law is broken but those it is named for."""
    verdict = verdicts[name]
    assert verdict.exit_code == 1, verdict.sentence()
    assert like(name).fullmatch(verdict.sentence()), verdict.sentence()
    assert {law for case in verdict.cases for law in case.broken} <= KILLED_BY[name]


@pytest.mark.parametrize("name", CHEAP)
def test_a_wrong_client_is_found_by_its_name_alone(name, capsys):
    """The mode and the server that show it are chosen, and said."""
    found(name, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WRONG if name not in CHEAP])
def test_each_other_wrong_client_is_found_by_its_name_alone(name, capsys):
    """By the command, a stage each."""
    found(name, capsys)


@pytest.mark.slow
def test_the_right_small_client_is_right(capsys):
    """Exit 0, in a part of the quick sample."""
    words = ["--faults", "fin,expire", "--positions", "before-blank-line,after-event"]
    assert cli.main(["chaos", "run", "-q", "--mutant", "right", *words, "--backend", "embedded"]) == 0
    assert capsys.readouterr().out.startswith("VALID. ")


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_the_right_small_client_is_right_wherever_a_wrong_one_is_found(name):
    """The same cases, in the same mode, against the same server."""
    shown = EXPOSURES[name]

    async def play():
        async with theatre(replace(bill_for(name, "right"), timeout_s=90.0)) as stage:
            schedules = shown.schedules(0, shown.scenario or SESSION)
            return await asyncio.gather(*map(stage.player.play, schedules))

    for case in asyncio.run(play()):
        assert case.verdict.word == "valid", case.verdict.sentence()


@pytest.mark.parametrize(
    "words",
    [
        ["--sample", "quick"],
        ["--faults", "fin"],
        ["--positions", "idle"],
        ["--only", "fin"],
        ["--kill"],
        ["--scenario", "hello"],
    ],
)
def test_other_cases_are_played_where_they_are_named(words, monkeypatch):
    """Nothing is chosen then but whether the mutant starts its runs."""
    told = []
    monkeypatch.setattr(command, "run", lambda options: told.append(options) or 0)
    for name in ("new-key", "swallow-gap", "hasty"):
        assert cli.main(["chaos", "run", "--mutant", name, *words]) == 0
    assert [(each.wanted.sample, each.wanted.mutant) for each in told] == [("quick", "")] * 3
    assert [each.bill.mode for each in told] == ["start", "follow", "follow"]
    assert {(each.bill.wrong, each.bill.heartbeat_ms, each.bill.timeout_s) for each in told} == {("", 200.0, 30.0)}


def test_a_mode_and_a_time_that_are_named_go_before_those_of_the_mutant(monkeypatch):
    """The cases stay its own."""
    told = []
    monkeypatch.setattr(command, "run", lambda options: told.append(options) or 0)
    words = ["--client-mode", "follow", "--client-timeout", "9"]
    assert cli.main(["chaos", "run", "--mutant", "new-key", *words]) == 0
    assert (told[0].wanted.mutant, told[0].bill.mode, told[0].bill.timeout_s) == ("new-key", "follow", 9.0)
