"""`--mutant ID` of a server: our client is played against it, and the law that is named for it finds it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from chaos_cases import faults, played
from reattach_chaos import cli
from reattach_chaos.cases.not_found import not_found
from reattach_chaos.cases.recipe import bill_of
from reattach_chaos.cases.sample import Wanted
from reattach_chaos.cases.theatre import Bill
from reattach_chaos.schedules import Fault, Place, Planned, at, loads
from reattach_mockserver.mutants.registry import SERVER_MUTANTS

LIVE = str(Path(__file__).with_name("live.yaml"))
CUT = Planned(fault=Fault.STALL, at=at(Place.AFTER_EVENT, 3))
"""A silence, not a FIN: who is cut off at once may have committed nothing, and asks for all again, which no server does wrong."""
EXPIRED = Planned(fault=Fault.EXPIRE, at=at(Place.AFTER_EVENT, 2), settings={"keep": 2})
REPLACED = Planned(fault=Fault.NEW_EPOCH, at=at(Place.AFTER_EVENT, 3), settings={"keep": 7})
LOST_CREATE = Planned(fault=Fault.FIN, at=at(Place.AFTER_REQUEST), route="create")
IN_THE_LAST_RUN = Planned(fault=Fault.STALL, at=at(Place.AFTER_EVENT, 3, run=3))

PLAYED = {
    "beats-with-ids": ((CUT,), LIVE),
    "ends-when-left": ((CUT,), LIVE),
    "forgets-key-at-end": ((LOST_CREATE,), ""),
    "forgets-with-events": ((EXPIRED, replace(CUT, at=EXPIRED.at)), ""),
    "hides-failure": ((IN_THE_LAST_RUN,), ""),
    "ignores-key": ((LOST_CREATE,), ""),
    "ignores-query": ((EXPIRED, replace(CUT, at=EXPIRED.at)), ""),
    "jumps-over-expired": ((EXPIRED, replace(CUT, at=EXPIRED.at)), ""),
    "loses-at-page-edge": ((CUT,), "demo"),
    "loses-at-seam": ((CUT,), LIVE),
    "refuses-all-alike": ((EXPIRED, replace(CUT, at=EXPIRED.at)), ""),
    "repeats-at-seam": ((CUT,), LIVE),
    "serves-old-epoch": ((REPLACED, CUT), ""),
}
"""What shows a mutant, where that is not one cut behind the third event of the session, by a silence."""

SEVERAL = {
    "goes-back": [
        [Planned(fault=Fault.FIN, at=at(place), route=route)]
        for route in ("status", "answer")
        for place in (Place.IN_REQUEST_HEAD, Place.AFTER_REQUEST)
    ],
    "status-stands-still": [
        [replace(CUT, at=at(Place.AFTER_EVENT, event)) for event in events]
        for events in ((3,), (4,), (5,), (6,), (7,), (3, 5), (4, 6), (5, 7), (3, 5, 7))
    ],
}
"""Cases of which one shows it. One that goes back does so every other time; one that stands still is believed only where a status
is there before the stream that was asked for beside it.
"""

SEEN = sorted(name for name, wrong in SERVER_MUTANTS.items() if not wrong.unseen)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_wrong_server_is_found_and_the_first_line_names_it(capsys):
    """Exit 1, the anomaly and the case first; the page and the saved case say which server it was."""
    words = ["chaos", "run", "-q", "--mutant", "skips-one", "--only", "stall-after-event-6", "--seed", "9"]
    assert cli.main([*words, "--backend", "embedded", "--fail-fast"]) == 1
    out = capsys.readouterr().out
    first = re.match(r"INVALID: lost\. Case (stall-after-event-6\S*): asked after event 6 ", out)
    assert first, out
    folder = Path(".reattach/chaos/9")
    assert "mutant skips-one" in (folder / "index.html").read_text()
    saved = loads((folder / f"{first[1]}.json").read_text())
    assert bill_of(saved, Bill()).wrong == "skips-one", "replay and shrink play against it again"


def test_a_mutant_that_is_not_there_is_a_wrong_argument(capsys):
    """Exit 64, with the nearest name of clients' and servers'; and so is one beside what it would take the place of."""
    assert cli.main(["chaos", "run", "--mutant", "skip-one"]) == 64
    first, clients, servers = capsys.readouterr().err.splitlines()
    assert first.endswith("there is none of that name. Did you mean skips-one? There are")
    assert clients.startswith("clients: right, deliver-first, ")
    assert servers.startswith("servers: asks-for-days, ")
    assert cli.main(["chaos", "run", "--mutant", "skips-one", "--target", "http://127.0.0.1:9"]) == 64
    assert "leave --target out" in capsys.readouterr().err
    assert cli.main(["chaos", "run", "--client", "a", "--mutant", "right"]) == 64
    assert "leave --client out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("bill", "shown", "told"),
    [
        (Bill(wrong="takes-garbage"), "", ["was not found: no client under test sends what is no cursor."]),
        (Bill(wrong="beats-with-ids"), "", ["was not found by these cases: it ", " I1 finds it "]),
        (Bill(mutant="by-text"), "", ["by-text was not found by these cases; --mutant by-text alone plays"]),
        (Bill(mutant="by-text"), "by-text", ["The mutant by-text was not found."]),
        (Bill(mutant="right"), "", []),
        (Bill(), "", []),
    ],
)
def test_a_mutant_that_was_not_found_is_told_with_the_reason(bill, shown, told):
    """VALID of what is wrong on purpose would be read as: we find nothing."""
    said = not_found(bill, Wanted(mutant=shown))
    assert len(said) == bool(told)
    assert all(words in said[0] for words in told)


def test_the_front_page_says_how_many_servers_cannot_be_seen():
    """The number is the registry's."""
    page = " ".join((Path(__file__).parents[3] / "README.md").read_text().split())
    assert f"({len(SERVER_MUTANTS) - len(SEEN)} of the {len(SERVER_MUTANTS)} servers cannot be seen" in page


@pytest.mark.slow
@pytest.mark.parametrize("mutant", SEEN)
def test_a_wrong_server_is_found_by_its_law(mutant):
    """One case is enough, or few; our client may mask the fault, the wire does not."""
    planned, scenario = PLAYED.get(mutant, ((CUT,), ""))
    wrong = SERVER_MUTANTS[mutant]
    cases = [faults(*each) for each in SEVERAL.get(mutant, [planned])]
    verdicts = [case.verdict for case in played(*cases, wrong=mutant, scenario=scenario, timeout_s=60.0).values()]
    verdict = next((each for each in verdicts if each.word == "invalid"), verdicts[0])
    assert verdict.word == "invalid", verdict.sentence()
    assert set(wrong.found_by) <= set(verdict.broken), verdict.sentence()
    assert verdict.sentence().startswith(f"INVALID: {wrong.anomaly}. "), verdict.sentence()


@pytest.mark.slow
def test_the_right_server_is_right_wherever_a_wrong_one_is_found():
    """The same cases, and no law is broken."""
    for scenario in ("", LIVE, "demo"):
        found = [faults(*planned) for planned, where in [((CUT,), ""), *PLAYED.values()] if where == scenario]
        for case in played(*{each.id: each for each in found}.values(), scenario=scenario).values():
            assert case.verdict.word == "valid", case.verdict.sentence()
