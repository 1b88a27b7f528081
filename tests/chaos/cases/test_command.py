"""`reattach chaos` from its words to its exit code, on real sockets."""

import json
import sys
from dataclasses import replace

import pytest

from chaos_cases import faults
from reattach_chaos import cli
from reattach_chaos.cases.recipe import bill_of
from reattach_chaos.cases.theatre import Bill
from reattach_chaos.schedules import Fault, Place, Planned, at, dumps, loads

USAGE, NOT_KNOWN = 64, 3


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_wrong_client_is_found_saved_and_found_again(here, capsys):
    """Exit 1, the anomaly first; the case in its folder; the line that repeats it does."""
    words = ["chaos", "run", "-q", "--mutant", "after-end", "--only", "fin-after-terminal", "--seed", "9"]
    words += ["--backend", "embedded", "--junit", "junit.xml"]
    assert cli.main(words) == 1
    out = capsys.readouterr().out
    assert out.startswith("INVALID: storm. Case fin-after-terminal: ")
    assert "again: reattach chaos replay fin-after-terminal (or shrink)" in out
    folder = here / ".reattach" / "chaos" / "9"
    assert json.loads((folder / "report.json").read_text())["verdict"] == "invalid"
    assert "<html" in (folder / "index.html").read_text()
    assert "storm" in (here / "junit.xml").read_text()
    saved = json.loads((folder / "fin-after-terminal.json").read_text())
    assert saved["client"] == {"client": "mutant after-end", "mode": "follow"}

    assert cli.main(["chaos", "list"]) == 0
    home, *lines = capsys.readouterr().out.splitlines()
    assert home == ".reattach/chaos/9", "once, and not in each line"
    rows = [" ".join(line.split()) for line in lines]
    assert "invalid storm fin-after-terminal client mutant after-end server reference" in rows
    assert cli.main(["chaos", "list", "--json"]) == 0
    facts = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(facts) == len(lines)
    found = ("invalid", "storm", "mutant after-end", "reference")
    assert {(each["verdict"], each["anomaly"], each["client"], each["server"]) for each in facts} == {found}
    assert cli.main(["chaos", "report"]) == 0
    assert capsys.readouterr().out.strip().endswith("index.html")
    assert cli.main(["chaos", "report", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["page"].endswith("index.html")
    saved = (folder / "fin-after-terminal.json").rename(here / "my case.json")
    assert cli.main(["chaos", "replay", saved.name, "-q", "--backend", "embedded"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("INVALID: storm.")
    assert "again: reattach chaos replay 'my case.json' " in out, "where no id would find it"


def test_a_failing_case_is_shrunk_to_the_one_fault_that_matters(here, capsys):
    """What fails in the same way is kept, as small as it goes, beside its file; a case that does not fail any more is not."""
    matters = Planned(fault=Fault.RST, at=at(Place.BEFORE_BLANK_LINE, 2))
    other = Planned(fault=Fault.FIN, at=at(Place.AFTER_EVENT, 3), nth=2)
    schedule = faults(matters, other, client={"client": "mutant half-event"})
    (here / "two.json").write_text(dumps(schedule))
    assert cli.main(["chaos", "shrink", "two.json", "-q", "--backend", "embedded"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("INVALID: lost. Case fin-before-blank-line-of-event-1: ")
    assert out.endswith("again: reattach chaos replay fin-before-blank-line-of-event-1.json\n")
    assert loads((here / "fin-before-blank-line-of-event-1.json").read_text()).faults == (
        Planned(fault=Fault.FIN, at=at(Place.BEFORE_BLANK_LINE, 1)),
    )
    (here / "right.json").write_text(dumps(faults(matters, client={"client": "mutant right"})))
    assert cli.main(["chaos", "shrink", "right.json", "-q", "--backend", "embedded", "--json"]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("it does not fail any more: VALID.")
    facts = json.loads(told.out)
    assert (facts["kind"], facts["verdict"], facts["file"], facts["exit"]) == ("shrunk", "valid", "", 0)
    assert loads(json.dumps(facts["schedule"])).faults == (matters,)


def test_a_client_that_shows_no_event_is_no_success(capsys):
    """It says a line, and so loses everything; nothing of it is green."""
    words = [
        "chaos",
        "run",
        "-q",
        "--client",
        """echo '{"kind":"rendered","id":"x"}'""",
        "--only",
        "fin-after-event-2",
        "--faults",
        "stall",
        "--json",
    ]
    assert cli.main([*words, "--backend", "embedded"]) == 1
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["kind"], last["verdict"], last["exit"], last["valid"]) == ("verdict", "invalid", 1, 0)


def test_no_case_is_no_success(capsys):
    """Nothing was asked that there is: not known."""
    assert cli.main(["chaos", "run", "-q", "--only", "nothing", "--backend", "embedded", "--client", "true"]) == 3
    assert capsys.readouterr().out.startswith("UNKNOWN. No case was played.")


def test_a_server_that_is_not_there_is_not_known(capsys):
    """Infrastructure, and neither good nor bad."""
    words = ["chaos", "run", "-q", "--target", "http://127.0.0.1:9", "--client", "true", "--backend", "embedded"]
    assert cli.main(words) == NOT_KNOWN
    assert capsys.readouterr().err.startswith("UNKNOWN. Nothing could be played: POST http://127.0.0.1:9/v1/runs")


def test_a_schedule_is_played_with_the_scenario_that_it_names():
    """By hand or saved; the command line goes before it, and the name of the session means its three runs."""
    assert bill_of(faults(scenario="tools"), Bill()).scenario == "tools"
    assert bill_of(faults(scenario="tools"), Bill(scenario="long-text")).scenario == "long-text"
    assert bill_of(faults(), Bill()).scenario == ""
    assert bill_of(faults(server={"scenario": "session"}), Bill()).scenario == "session"


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ({"scenario": {"steps": []}}, "the script of case no-fault"),
        (
            {"server": {"retention_events": 9}},
            "case no-fault cannot be played: there is no retention_events on sockets",
        ),
        ({"client": {"keep": "none"}}, "case no-fault cannot be played: there is no keep on sockets"),
        ({"client": {"on_gap": "wait"}}, "case no-fault cannot be played: on_gap is one of raise, snapshot, continue"),
        ({"scenario": "absent.yaml"}, "absent.yaml"),
        ({"client": {"on_gap": ["raise"]}}, "on_gap is one of raise, snapshot, continue"),
        ({"client": {"mode": "foo"}}, "mode is one of follow, start, simulated; not 'foo'"),
        ({"client": {"mode": "simulated", "on_gap": "x"}}, "on_gap is one of raise, snapshot, continue"),
        ({"client": {"client": 5}}, "client is a text, not 5"),
        ({"client": {"client": " "}}, "client is reattach, a mutant or a command"),
        ({"client": {"client": "mutant nope"}}, "'mutant nope' is none; there is mutant right, mutant deliver-first"),
        ({"server": {"mutant": "nope"}}, "mutant is one of asks-for-days, "),
        ({"server": {"target": "nonsense"}}, "target 'nonsense': an address such as"),
        ({"server": {"scenario": {"steps": []}}}, "scenario is a text"),
        *(
            ({"server": {"heartbeat_ms": value}}, "heartbeat_ms is a whole number from 1 to 3600000")
            for value in (True, 0, 0.1, 10**9, "200", None)
        ),
    ],
)
def test_a_schedule_that_cannot_be_obeyed_is_64_and_says_why(rest, told, here, capsys):
    """Half an order obeyed would be another case, and green for nothing."""
    (here / "c.json").write_text(dumps(faults(**rest)))
    assert cli.main(["chaos", "replay", "c.json", "--backend", "embedded"]) == USAGE
    assert told in capsys.readouterr().err


LONG = {
    "busy": faults(
        Planned(
            fault=Fault.BUSY, at=at(Place.AFTER_REQUEST), times=2, settings={"status": 503, "retry_after_ms": 20_000}
        )
    ),
    "restart": faults(
        Planned(fault=Fault.SERVER_RESTART, at=at(Place.AFTER_EVENT, 2), settings={"down_ms": 20_000}),
        Planned(fault=Fault.SERVER_RESTART, at=at(Place.AFTER_EVENT, 3), settings={"down_ms": 20_000}),
    ),
    "latency": faults(Planned(fault=Fault.LATENCY, at=at(Place.CONNECTING), settings={"delay_ms": 40_000})),
}


@pytest.mark.parametrize("kind", LONG)
def test_a_plan_that_takes_longer_than_a_client_is_given_is_64(kind, here, capsys):
    """It could only end in "hang", whatever the client did. With more time it is a case; in the simulation it always is."""
    (here / "c.json").write_text(dumps(LONG[kind]))
    assert cli.main(["chaos", "replay", "c.json"]) == USAGE
    assert "the plan itself needs 40 s, a client is given 30: --client-timeout" in capsys.readouterr().err
    assert bill_of(LONG[kind], Bill(timeout_s=60)).timeout_s == 60
    assert bill_of(replace(LONG[kind], client={"mode": "simulated"}), Bill()).simulated


def test_a_suspended_client_takes_no_time():
    """Its clocks are turned on."""
    day = Planned(fault=Fault.SUSPEND, at=at(Place.AFTER_EVENT, 2), settings={"sleep_ms": 86_400_000})
    assert bill_of(faults(day), Bill()).timeout_s == 30


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "--faults", "fin,rat"], "--faults rat: there is fin, rst, stall"),
        (["run", "--positions", "nowhere"], "--positions nowhere: there is connecting"),
        (["run", "--mutant", "none"], "--mutant none: there is none of that name"),
        (["run", "--target", "localhost"], "--target localhost: an address such as"),
        *(
            (["run", "--target", url], f"--target {url}: an address such as")
            for url in (
                "http://[::1",
                "http://::1/",
                "http://127.0.0.1:x/",
                "http://127.0.0.1:99999",
                "http://127.0.0.1:0",
                "http:///v1",
                "ftp://127.0.0.1",
            )
        ),
        (["run", "--scenario", "absent.yaml"], "absent.yaml"),
        (["replay", "a" * 300], "there is no file and no saved case 'aaa"),
        (["shrink", "a\0b"], "there is no file and no saved case 'a"),
        (["replay", "absent"], "there is no file and no saved case 'absent'"),
    ],
)
def test_wrong_words_are_64_and_say_what_there_is(words, told, capsys):
    assert cli.main(["chaos", *words]) == USAGE
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--jobs", "0"],
        ["run", "--client-timeout", "x"],
        ["run", "--seed", "-5"],
        ["run", "--seed", "9" * 30],
        ["run", "--seed", "1.5"],
        [],
    ],
)
def test_words_that_no_command_has_are_64(words):
    """Argparse's own code is 2; ours is that of the surface page."""
    with pytest.raises(SystemExit) as left:
        cli.main(["chaos", *words])
    assert left.value.code == USAGE


SOME = ["--faults", "rst", "--positions", "after-event", "--only", "rst-after-event-1", "--backend", "embedded"]
DYING = """
import json, os, urllib.request
told = {"Accept": "text/event-stream", "Authorization": "Bearer " + os.environ["REATTACH_TOKEN"]}
for line in urllib.request.urlopen(urllib.request.Request(os.environ["REATTACH_EVENTS_URL"], headers=told)):
    if line.startswith(b"id:"):
        print(json.dumps({"kind": "rendered", "id": line[3:].strip().decode()}), flush=True)
"""


def test_a_client_that_shows_nothing_even_without_a_fault_is_not_judged(here, capsys):
    """A name that is mistyped loses nothing: nothing was played, and its own words say why."""
    assert cli.main(["chaos", "run", "-q", "--client", "./nothere", *SOME]) == NOT_KNOWN
    out = capsys.readouterr()
    assert "the client `./nothere` shows nothing, even without a fault. Exit code: 127. Stderr: " in out.err + out.out
    assert "not found" in out.err + out.out
    assert not (here / ".reattach").exists()


def test_what_a_client_wrote_to_stderr_is_shown_and_saved(here, capsys):
    """Its last line on the screen, the rest beside the history."""
    (here / "dying.py").write_text(DYING)
    assert cli.main(["chaos", "run", "-q", "--client", f"{sys.executable} dying.py", "--seed", "4", *SOME]) == 1
    assert "the client's last words on stderr: ConnectionResetError" in capsys.readouterr().out
    assert (here / ".reattach" / "chaos" / "4" / "rst-after-event-1.stderr").read_text().startswith("Traceback")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--junit", "nowhere/x.xml"], "--junit nowhere/x.xml: there is no folder nowhere"),
        (["--junit", "."], "--junit . is a folder"),
        (["--out", "file"], "file is a file"),
        (["--out", "file/deeper"], "file is a file"),
        ([], "chaos is a file"),
    ],
    ids=["junit", "junit-folder", "out", "out-deeper", "home"],
)
def test_what_could_not_be_saved_anywhere_is_64_before_anything_is_played(words, told, here, capsys, monkeypatch):
    """An hour of playing is not lost at its end for a name that was wrong at its beginning."""
    (here / "file").touch()
    (here / ".reattach").mkdir()
    if not words:
        (here / ".reattach" / "chaos").touch()
    monkeypatch.setattr("reattach_chaos.cases.command.theatre", None)
    assert cli.main(["chaos", "run", "-q", *words]) == USAGE
    assert told in capsys.readouterr().err


def test_a_verdict_is_told_though_nothing_of_it_could_be_saved(here, capsys):
    """With its exit code; then what could not be written, and why."""
    folder = here / ".reattach" / "chaos" / "9"
    (folder / "fin-after-terminal.json").mkdir(parents=True)
    (folder / "index.html").mkdir()
    words = ["chaos", "run", "-q", "--mutant", "after-end", "--only", "fin-after-terminal", "--seed", "9"]
    assert cli.main([*words, "--backend", "embedded", "--junit", "junit.xml"]) == 1
    told = capsys.readouterr()
    assert told.out.startswith("INVALID: storm. Case fin-after-terminal: ")
    assert "again:" not in told.out, "there is nothing to play again"
    assert "case fin-after-terminal could not be written: " in told.err
    assert "the page could not be written: " in told.err
    assert "storm" in (here / "junit.xml").read_text(), "one loss is no reason for another"
