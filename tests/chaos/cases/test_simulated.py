"""`--sample sim`: drawn schedules in memory, by the same commands as those on sockets."""

import json

import pytest

from reattach.cli import main
from reattach_chaos.cases import sample


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of our own, and few cases."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sample, "SIM_CASES", 12)


def told(capsys):
    """Return the JSON lines."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_drawn_sample_is_played_and_what_came_to_nothing_is_not_counted(here, capsys):
    """Of each seed one schedule, whose id names it; a note says how many were not counted."""
    assert main(["chaos", "run", "--sample", "sim", "--seed", "100", "--json"]) == 0
    *cases, verdict = told(capsys)
    assert 0 < verdict["cases"] < 12
    assert verdict["fired"] == verdict["valid"] == verdict["cases"]
    assert {each["id"] for each in cases} <= {f"sim-seed-{seed}" for seed in range(100, 112)}


@pytest.mark.parametrize("seed", [21018, pytest.param(21587, marks=pytest.mark.slow)])
def test_a_drawn_case_whose_create_was_refused_for_good_is_not_counted(here, monkeypatch, capsys, seed):
    """There is no run to know of: behind each seed comes one whose create meets two 401, or eight web pages."""
    monkeypatch.setattr(sample, "SIM_CASES", 2)
    assert main(["chaos", "run", "--sample", "sim", "--seed", str(seed), "--json"]) == 0
    *cases, verdict = told(capsys)
    assert [each["id"] for each in cases] == [f"sim-seed-{seed}"]
    assert verdict["notes"][0].startswith("1 cases that were drawn are not counted")


@pytest.mark.parametrize(
    "words", [["--client", "./mine.sh"], ["--kill"], ["--scenario", "hello"], ["--mutant", "reset-on-200"]]
)
def test_what_has_no_place_there_is_an_error_of_usage(here, capsys, words):
    assert main(["chaos", "run", "--sample", "sim", *words]) == 64
    assert f"{words[0]} has no place there" in capsys.readouterr().err
