"""`--backend`: cases on the real Toxiproxy, and what a saved case says on the other one than that which found it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import toxiproxy_stage
from chaos_cases import faults
from reattach_chaos import cli
from reattach_chaos.cases.folder import Folder, Saved
from reattach_chaos.cases.recipe import bill_of
from reattach_chaos.cases.second_opinion import second_opinion
from reattach_chaos.cases.theatre import Bill
from reattach_chaos.checkers import judge
from reattach_chaos.history import Case, Delivered, Logged, Recorder
from reattach_chaos.report import Played
from reattach_chaos.toxiproxy.control.backends import PROGRAM, VARIABLE

CHOSEN = (
    "rst-before-blank-line-of-event-4",
    "fin-before-blank-line-of-event-8",
    "rst-after-event-3-of-run-2",
    "fin-after-terminal",
    "rst-after-terminal-of-run-3",
    "stall-before-blank-line-of-event-5",
    "fin-after-event-6-and-rst-after-event-7",
    "fin-after-event-2-and-fin-after-event-3-on",
    "fin-after-request",
    "fin-in-request-head-of-create",
    "early-end-after-event-2",
    "expire-after-event-2-keep-1",
)
"""Starts of ids of the quick sample: each kind of end, on a first stream and on a resume, and every kind of request."""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def real(monkeypatch):
    """The real one, found as a user's is."""
    monkeypatch.setenv(VARIABLE, toxiproxy_stage.program(PROGRAM))


def said(capsys):
    """Return the verdict's line of a run with `--json`."""
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_a_selection_of_the_quick_sample_is_valid_on_the_real_toxiproxy(real, capsys):
    """All fired, all valid; the whole of it is in the slow leg."""
    words = ["chaos", "run", "-q", "--json", "--backend", "toxiproxy", "--only", *CHOSEN]
    assert cli.main(words) == 0
    verdict = said(capsys)
    assert verdict["backend"] == "toxiproxy"
    assert verdict["cases"] == verdict["fired"] == verdict["valid"] >= 20


@pytest.mark.slow
def test_a_saved_case_says_the_same_on_the_other_backend(real, capsys):
    """What the embedded one found is about bytes: the real one finds it, and the replay says so."""
    words = ["chaos", "run", "-q", "--mutant", "after-end", "--only", "fin-after-terminal-of-run-3"]
    assert cli.main([*words, "--seed", "9", "--backend", "embedded"]) == 1
    capsys.readouterr()
    (path,) = Path(".reattach/chaos/9").glob("fin*-3.json")
    assert json.loads(path.read_text())["versions"]["backend"] == "embedded"

    assert cli.main(["chaos", "replay", str(path), "-q", "--json", "--backend", "toxiproxy"]) == 1
    verdict = said(capsys)
    assert (verdict["verdict"], verdict["backend"]) == ("invalid", "toxiproxy")
    (note,) = verdict["notes"]
    assert note.startswith("Played on toxiproxy, found on embedded: both times I16 is broken.")
    assert note.endswith(" It is about the bytes, not about timing.")


def a_case(*shown, backend="embedded"):
    """Return a case of two events, of which these were shown."""
    recorder = Recorder()
    recorder.record(Case(id="c", seed=1))
    for number in (1, 2):
        recorder.record(Logged(id=f"e1.{number}", cursor=f"e1.{number}", sequence=number, type="status", run="r"))
    for number in shown:
        recorder.record(Delivered(id=f"e1.{number}", run="r"))
    history = recorder.history()
    return Played(schedule=faults(versions={"backend": backend}), history=history, verdict=judge(history))


@pytest.mark.parametrize(
    ("then", "now", "backend", "told"),
    [
        (a_case(2, 1), a_case(2, 1), "toxiproxy", "both times I3 is broken. It is about the bytes"),
        (
            a_case(2, 1),
            a_case(1, 2),
            "toxiproxy",
            "I3 was broken there and is not here. Unless it was chance, it is about",
        ),
        (a_case(1, 2), a_case(2, 1), "toxiproxy", "found on embedded, where no law was broken."),
        (a_case(2, 1), a_case(2, 1), "embedded", ""),
    ],
)
def test_a_second_opinion_says_what_the_two_have_in_common(then, now, backend, told, here):
    """The history beside the saved case is judged again; without it, or on the same backend, there is nothing to compare."""
    saved = Path(Folder(here).save(then).file)
    found = Saved(saved, then.schedule)
    said = second_opinion(found, found.history(), now, backend)
    assert told in said
    assert bool(said) == bool(told)
    gone = Saved(saved.rename(here / "elsewhere.json"), then.schedule)
    assert gone.history() is None
    assert second_opinion(gone, None, now, "toxiproxy") == "Played on toxiproxy, found on embedded."


def test_a_saved_case_is_played_on_the_embedded_one_again():
    """Without a word of the command line; with one, on what that says."""
    of_ours, of_theirs = (faults(versions={"backend": name}) for name in ("embedded", "toxiproxy"))
    assert bill_of(of_ours, Bill()).backend == "embedded"
    assert bill_of(of_ours, Bill(backend="toxiproxy")).backend == "toxiproxy"
    assert bill_of(of_ours, Bill(toxiproxy="http://127.0.0.1:8474")).backend == "auto"
    assert bill_of(of_theirs, Bill()).backend == "auto"
    assert bill_of(replace(of_ours, versions={}), Bill()).backend == "auto"
