"""What a person and a program read of a demo: columns, words, first line, last line."""

import json
from pathlib import Path

from reattach_chaos.demo.cuts import Cuts
from reattach_chaos.demo.report import bad_lines, facts, good_lines, last_line
from reattach_chaos.demo.screen import Screen
from reattach_chaos.demo.server_log import Ledger
from reattach_chaos.demo.showing import Logged, Showing, Shown
from reattach_chaos.demo.stage import Played
from reattach_chaos.demo.verdict import Verdict, decide

GOOD = Verdict(
    anomalies=(), unknown=(), events=132, planned=402, fired=402, during_replay=17, connections=409, kills=5, again=4,
    creates=2, runs=1, tool_calls=9, effects=9, seconds=11.84,
)  # fmt: skip


def in_the_middle() -> Played:
    cuts = Cuts(lost_answers=1)
    cuts.fired = {"fin": set(range(1, 133)), "rst": set(range(1, 80)), "stall": set()}
    cuts.latest = {"fin": "7f3a-1.132", "rst": "7f3a-1.79"}
    return Played(cuts=cuts, ledger=Ledger(1, ()), run_id="run_7f3a")


def test_lanes_are_drawn_in_the_surfaces_columns(capsys, monkeypatch):
    """On a terminal: as on the surface page, section 2."""
    screen = Screen(132, 5, quiet=False, as_json=False, color=False)
    monkeypatch.setattr(screen, "_live", True)
    screen.progress(in_the_middle())
    assert capsys.readouterr().out.replace("\x1b[K", "").splitlines() == [
        "  create   answer lost, same key again            1 / 1     runs 1",
        "  FIN      ##############################       132 / 132",
        "  RST      ##################                    79 / 132   cut after e1.79",
        "  stall    waiting                                0 / 132",
        "  kill -9  waiting                                0 / 5",
    ]
    screen.progress(in_the_middle())
    assert capsys.readouterr().out.startswith("\x1b[5A")


def test_on_a_narrow_terminal_a_lane_takes_one_row(capsys, monkeypatch):
    """A lane that took two rows would be drawn again and again below itself; the last lines are broken between their parts."""
    screen = Screen(132, 5, quiet=False, as_json=False, color=False)
    monkeypatch.setattr(screen, "_live", True)
    monkeypatch.setattr(screen, "_columns", lambda: 50)
    screen.progress(in_the_middle())
    for line in [*good_lines(GOOD, None), last_line(GOOD)]:
        screen.line(line)
    told = capsys.readouterr().out.replace("\x1b[K", "").splitlines()
    assert told == [
        "  create   answer lost, same key         1 / 1",
        "  FIN      #####################       132 / 132",
        "  RST      #############                79 / 132",
        "  stall    waiting                       0 / 132",
        "  kill -9  waiting                       0 / 5",
        "cuts planned 402, fired 402 (17 during a replay)",
        "  connections 409",
        "client killed 5 times, 4 events shown again, all",
        "  marked",
        "  creates 2, runs 1",
        "  tool calls 9, side effects 9",
        "shown = log, byte for byte, 132 events   11.8 s",
        "lost 0  duplicated 0  reordered 0  runs 1",
    ]


def test_elsewhere_a_lane_is_told_when_it_is_done(capsys):
    """A log file gets no cursor movements, and each line once."""
    screen = Screen(132, 5, quiet=False, as_json=False, color=True)
    screen.progress(in_the_middle())
    screen.progress(in_the_middle())
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told] == ["create", "FIN"]
    assert "\x1b" not in "".join(told)


def test_a_program_gets_json_and_a_person_stderr(capsys):
    """Two readers, two streams."""
    screen = Screen(132, 5, quiet=False, as_json=True, color=False)
    screen.header("reattach demo   seed 7", seed=7)
    screen.progress(in_the_middle())
    screen.progress(in_the_middle())
    said = capsys.readouterr()
    first, second = map(json.loads, said.out.splitlines())
    assert first == {"kind": "demo", "seed": 7}
    assert second == {"kind": "progress", "fired": {"fin": 132, "rst": 79, "stall": 0}, "lost_answers": 1, "kills": 0}
    assert said.err.startswith("reattach demo   seed 7\n")


def test_a_good_end_reads_as_on_the_surface_page():
    """Word for word."""
    assert [*good_lines(GOOD, None), last_line(GOOD)] == [
        "cuts planned 402, fired 402 (17 during a replay)   connections 409",
        "client killed 5 times, 4 events shown again, all marked   creates 2, runs 1   tool calls 9, side effects 9",
        "shown = log, byte for byte, 132 events   11.8 s",
        "lost 0  duplicated 0  reordered 0  runs 1",
    ]


def test_a_bad_end_begins_with_the_first_event_concerned(tmp_path):
    """The anomaly leads, the counts follow, the folder is named."""
    log = [Logged(sequence=n, id=str(n), type="status", content="{}") for n in (1, 2, 3)]
    shown = [Shown(id=str(n), sequence=n, type="status", content="{}") for n in (1, 3)]
    played = Played(log=log, showings=[Showing(who="RST 2", shown=shown)], ledger=Ledger(1, ()), run_id="r")
    verdict = decide(played)
    lines = bad_lines(verdict, played, tmp_path, naive=False)
    assert lines[0] == "FAILED: lost. RST 2 follower: event 2 (status) was never shown."
    assert str(tmp_path) in lines[-1]
    assert last_line(verdict) == "lost 1  duplicated 0  reordered 0  runs 1"
    told = facts(verdict, Path("x"))
    assert (told["verdict"], told["exit"], told["lost"], told["kept"]) == ("bad", 1, 1, "x")


def test_what_is_not_known_is_said_so(tmp_path):
    """No anomaly, and not green."""
    verdict = Verdict(**{**{name: getattr(GOOD, name) for name in Verdict.__slots__}, "unknown": ("a", "b")})
    assert bad_lines(verdict, Played(), tmp_path, naive=False)[:2] == ["NOT KNOWN: a.", "  b"]
    assert (verdict.exit_code, facts(verdict, None)["verdict"]) == (3, "unknown")
