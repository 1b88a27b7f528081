"""What may be typed, in which order, and what a mistake costs: 64 and a sentence, never a traceback."""

import importlib.metadata
import sys

import pytest

from reattach import __version__
from reattach.cli import commands


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "COMMAND"),
        (["rn"], "did you mean 'run'"),
        (["run"], "URL"),
        (["run", "http://127.0.0.1:1"], "reattach run http://127.0.0.1:1 INPUT"),
        (
            ["run", "http://127.0.0.1:1", "a", "--kay", "k"],
            "reattach run: there is no option or place for '--kay k', did you mean '--key'?",
        ),
        (["journal", "check", "--jurnal", "x"], "reattach journal check: there is no option or place for '--jurnal x'"),
        (["runs", "--jsno"], "did you mean '--json'?"),
        (["run", "http://127.0.0.1:1", "a", "--data", "b.json"], "not both"),
        (["run", "http://127.0.0.1:1", "a", "--key", "k", "--new"], "contradict"),
        (["run", "http://127.0.0.1:1", "a", "--key", "two words"], "visible ASCII"),
        (["run", "ftp://127.0.0.1", "a"], "no address"),
        (["run", "http://me:secret@127.0.0.1:1", "a"], "token"),
        (["run", "http://127.0.0.1:1", "a", "--timeout", "0"], "seconds"),
        (["run", "http://127.0.0.1:1", "a", "--give-up-after", "nan"], "seconds"),
        (["run", "http://127.0.0.1:1", "a", "--profile", "vendor"], "vendor"),
        (["run", "http://127.0.0.1:1", "a", "--transport", "pigeon"], "pigeon"),
        (["run", "http://127.0.0.1:1", "a", "--on-gap", "guess"], "guess"),
        (["run", "http://127.0.0.1:1", "a", "--token-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE"),
        (["run", "http://127.0.0.1:1", "a", "--prof", "native"], "--prof"),
        (["follow"], "RUN"),
        (["follow", "nobody"], "give its server, too"),
        (["follow", "http://127.0.0.1:1"], "is a server; name the run, too: reattach follow http://127.0.0.1:1 RUN"),
        (["follow", "http://127.0.0.1:1", ""], "run='' is no run id"),
        (["follow", "a", "b", "c"], "c"),
        (["journal"], "show|export|prune|check"),
        (["journal", "show", "nobody"], "knows no run"),
        (["journal", "check"], "no journal"),
        (["runs", "--journal", "/nowhere/at/all.db"], "no journal"),
        (["cancel", "nobody"], "reattach cancel URL nobody"),
        (["respond", "run_1"], "the journal knows no run 'run_1'"),
        (["reconcil"], "no command 'reconcil', did you mean 'reconcile'?"),
    ],
)
def test_a_wrong_command_line_exits_64_and_says_what_is_wrong(reattach, words, told):
    """Also what only the library can find; argparse's own code 2 never comes out."""
    said = reattach(*words)
    assert said.code == 64
    assert told in said.err + said.out
    assert "Traceback" not in said.err


@pytest.mark.parametrize("words", [["--json", "runs"], ["runs", "--json"], ["-q", "runs", "--json", "-v"]])
def test_the_common_flags_stand_before_or_behind_the_command(reattach, server, words):
    """What was said before the command is not taken back behind it."""
    reattach("run", server.url, "x", "--key", "k", "-q")
    assert [line["key"] for line in reattach(*words, "--all").lines] == ["k"]


@pytest.mark.parametrize("words", [["--version"], ["runs", "--version"], ["journal", "check", "--version"]])
def test_the_version_is_told_everywhere(reattach, words):
    said = reattach(*words)
    assert (said.code, said.out.strip()) == (0, f"reattach {__version__}")


def test_options_may_stand_between_the_words(reattach, server):
    """`run URL --key K INPUT`: argparse alone takes INPUT for left out as soon as an option stands before it."""
    said = reattach("run", server.url, "--key", "between", "x", "--json")
    assert said.code == 0
    assert said.kinds("run")[0]["key"] == "between"
    assert reattach("follow", server.url, "--json", "between").kinds("finished")


def test_an_input_that_looks_like_an_option_stands_behind_two_dashes(reattach, server):
    assert reattach("run", server.url, "--key", "dashes", "--", "--verbose").code == 0


def test_the_help_names_every_command(reattach):
    """Ours, and those that other packages add."""
    said = reattach("--help")
    assert said.code == 0
    assert all(f"    {name}" in said.out for name in ("run", "follow", "runs", "cancel", "journal", "serve", "demo"))


class Broken(importlib.metadata.EntryPoint):
    """An entry point of a package whose own requirements are not there."""

    def load(self):
        raise ModuleNotFoundError("No module named 'starlette'", name="starlette")


@pytest.fixture
def broken_serve(monkeypatch):
    entry = Broken("serve", "reattach_mockserver.cli:serve", "reattach.commands")
    monkeypatch.setattr(commands, "entry_points", lambda group: [entry])


def test_a_missing_extra_is_named_with_the_install_line(reattach, broken_serve):
    """No traceback, and 64."""
    said = reattach("serve")
    assert said.code == 64
    assert "pip install 'reattach[mockserver]'" in said.err
    assert "Traceback" not in said.err


def test_a_command_that_cannot_be_loaded_breaks_no_other(reattach, broken_serve):
    assert reattach("runs").code == 0
    said = reattach("--help")
    assert said.code == 0
    assert "pip install 'reattach[mockserver]'" in said.out


def test_only_the_command_that_was_asked_for_is_loaded(reattach, monkeypatch):
    """Another package's command costs nothing until it is used."""

    def refuse(self):
        raise AssertionError(f"{self.name} was loaded")

    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", refuse)
    assert reattach("runs").code == 0


def test_without_platformdirs_the_install_line_is_named(reattach, monkeypatch):
    """It is only needed where neither a journal nor a data folder is named."""
    monkeypatch.delenv("REATTACH_HOME")
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    said = reattach("runs")
    assert said.code == 64
    assert "pip install 'reattach[cli]'" in said.err


def test_a_fault_of_ours_is_70_and_says_how_to_report_it(reattach, monkeypatch):
    """The traceback is shown with -v."""

    def fault(words):
        raise ZeroDivisionError("unthinkable")

    monkeypatch.setattr("reattach.cli.parse", fault)
    said = reattach("runs")
    assert said.code == 70
    assert "unthinkable" in said.err
    assert "-v" in said.err
    assert "Traceback" not in said.err
    assert "Traceback" in reattach("runs", "-v").err
