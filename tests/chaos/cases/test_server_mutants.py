"""`--mutant ID` of a server: our client is played against it, and the law that is named for it finds it."""

import json
import re
from pathlib import Path

import pytest

from chaos_cases import played
from reattach_chaos import cli
from reattach_chaos.cases.exposures import EXPOSURES
from reattach_chaos.cases.not_found import not_found
from reattach_chaos.cases.recipe import SESSION, bill_of
from reattach_chaos.cases.sample import Wanted
from reattach_chaos.cases.theatre import Bill
from reattach_chaos.schedules import loads
from reattach_mockserver.mutants.registry import SERVER_MUTANTS

SEEN = sorted(name for name, wrong in SERVER_MUTANTS.items() if not wrong.unseen)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_wrong_server_is_found_and_the_first_line_names_it(capsys):
    """Exit 1, the anomaly and the case first; the page and the saved case say which server it was."""
    words = ["chaos", "run", "-q", "--mutant", "skips-one", "--seed", "9", "--backend", "embedded"]
    assert cli.main(words) == 1
    out = capsys.readouterr().out
    first = re.match(r"INVALID: lost\. Case (stall-after-event-3): asked after event 3 ", out)
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
        (Bill(wrong="beats-with-ids"), "", ["by these cases; --mutant beats-with-ids alone plays"]),
        (Bill(wrong="beats-with-ids"), "beats-with-ids", ["The mutant beats-with-ids was not found."]),
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


def test_each_server_that_can_be_seen_has_cases():
    """And none of the others: their reason is in the registry."""
    assert set(SEEN) == set(EXPOSURES) & set(SERVER_MUTANTS)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", SEEN)
def test_a_wrong_server_is_found_by_its_name_alone(mutant, capsys):
    """One case is enough, or few; our client may mask the fault, the wire does not. A seed's page and cases are there."""
    wrong = SERVER_MUTANTS[mutant]
    assert cli.main(["chaos", "run", "-q", "--mutant", mutant, "--backend", "embedded", "--seed", "9"]) == 1
    told = capsys.readouterr()
    assert told.out.startswith(f"INVALID: {wrong.anomaly}. "), told.out
    assert f"Only what shows the mutant {mutant} is played" in told.err
    facts = json.loads(Path(".reattach/chaos/9/report.json").read_text())
    assert set(wrong.found_by) <= {
        law for case in facts["cases"] for law, found in case["laws"].items() if found["verdict"] == "invalid"
    }


@pytest.mark.slow
def test_the_right_server_is_right_wherever_a_wrong_one_is_found():
    """The same cases, and no law is broken."""
    for scenario in ("", "silence", "demo"):
        shown = [EXPOSURES[name] for name in SEEN if EXPOSURES[name].scenario == scenario]
        cases = {case.id: case for each in shown for case in each.schedules(0, scenario or SESSION)}
        for case in played(*cases.values(), scenario=scenario).values():
            missed = (
                case.verdict.fired < case.verdict.planned
            )  # of two silences the second may find nothing left to come
            assert case.verdict.word == ("unknown" if missed else "valid"), case.verdict.sentence()
