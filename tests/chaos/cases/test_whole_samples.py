"""Whole samples of cases, of our own client against our own server; minutes long."""

import json

import pytest

from reattach.cli import main

pytestmark = pytest.mark.slow


def run(capsys, *words):
    """Run a sample on the embedded proxy; return the verdict's line and each case's."""
    code = main(["chaos", "run", "--backend", "embedded", "--json", *words])
    *cases, verdict = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert verdict["exit"] == code
    return verdict, cases


@pytest.mark.timeout(3600)
def test_every_byte_is_survived_with_fin_and_with_rst(tmp_path, monkeypatch, capsys):
    """Some 10,000 cuts of a session with an event of each kind, and all pairs: each fired, each valid."""
    monkeypatch.chdir(tmp_path)
    verdict, cases = run(capsys, "--sample", "full", "--require-coverage")
    assert verdict["exit"] == 0, verdict["sentence"]
    assert verdict["cases"] == verdict["fired"] == verdict["valid"] == len(cases) > 10_000


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [11, 12])
def test_random_cases_are_survived(tmp_path, monkeypatch, capsys, seed):
    """Five hundred drawn ones; those count whose faults all came, and few do not."""
    monkeypatch.chdir(tmp_path)
    verdict, cases = run(capsys, "--sample", "soak", "--seed", str(seed))
    assert verdict["exit"] == 0, verdict["sentence"]
    assert verdict["cases"] == verdict["fired"] == verdict["valid"] == len(cases) > 400


@pytest.mark.timeout(900)
def test_how_many_cases_are_played_at_a_time_changes_no_verdict(tmp_path, monkeypatch, capsys):
    """The quick sample, with few and with many side by side."""
    monkeypatch.chdir(tmp_path)
    words = [sorted((each["id"], each["verdict"]) for each in run(capsys, "--jobs", jobs)[1]) for jobs in ("3", "12")]
    assert words[0] == words[1]
    assert {word for _, word in words[0]} == {"valid"}
