"""What a person sees, on a terminal and elsewhere: the text whole, the updating line below it, no control character of a server."""

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from client_cli_screen import Screen, Terminal
from reattach import Connection, Event, Gap, Outcome, Status
from reattach.cli.people import People
from reattach.core.fold import ToolAnswered, ToolCalled

WAITING = Connection(phase="waiting", reason="connection reset", attempt=4, retry_in=3.0)
LIVE = Connection(phase="live")


class Stage:
    """A display on a terminal (or on pipes) and a clock that a test moves."""

    def __init__(self, columns=40, rows=12, *, terminal=True, color=True, quiet=False):
        self.now = 0.0
        self.screen = Screen(columns, rows)
        self.out = Terminal(self.screen) if terminal else io.StringIO()
        self.err = Terminal(self.screen) if terminal else io.StringIO()
        self.people = People(
            self.out, self.err, quiet=quiet, color=color, clock=lambda: self.now, columns=lambda: columns
        )

    def says(self, text, changes=(), **more):
        facts = {"id": "e", "run_id": "r", "type": "t", "data": {}, "kind": "text", "text": text, "cursor": "e1.4"}
        self.people.event(Event(**{**facts, **more}), changes)

    def after(self, seconds):
        self.now += seconds
        self.people.tick()


@pytest.fixture(autouse=True)
def terminal_kind(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


def test_the_updating_line_stands_below_the_text_and_counts_down():
    """The text's own line is left as it is, in the middle of a word."""
    stage = Stage(columns=70)
    stage.says("half a sen")
    stage.people.connection(WAITING)
    stage.after(0.1)
    assert stage.screen.text == "half a sen\nreconnecting in 3 s (attempt 4: connection reset)"
    stage.after(1.0)
    assert stage.screen.text == "half a sen\nreconnecting in 2 s (attempt 4: connection reset)"
    stage.people.connection(LIVE)
    stage.says("tence")
    assert stage.screen.text == "half a sentence"


@settings(max_examples=150, deadline=None)
@given(
    texts=st.lists(st.text("ab \n", max_size=30), max_size=12),
    columns=st.integers(5, 20),
    rows=st.integers(3, 30),
)
@example(texts=["abcde", "fgh"], columns=5, rows=12)  # the text ends in the last column
@example(texts=["ab"] * 9, columns=5, rows=3)  # the text ends in the last row
@example(texts=["a\n", "\n ", ""], columns=5, rows=3)  # blank lines where the screen has scrolled
def test_the_updating_line_never_harms_the_text(texts, columns, rows):
    """Drawn after every piece, at any column and at the bottom of the screen: what is left is the text alone."""
    stage, plain = Stage(columns, rows), Screen(columns, rows)
    for text in [
        *texts,
        "end",
    ]:  # a screen's text has no blank lines at its end: the two would be compared at different rows
        stage.people.connection(WAITING)
        stage.after(0.1)
        stage.people.connection(LIVE)
        stage.says(text)
        plain.feed(text)
    stage.after(0.1)
    stage.people._line.erase()
    assert stage.screen.text.split("\n")[-rows + 2 :] == plain.text.split("\n")[-rows + 2 :]


def test_all_is_well_is_an_empty_line():
    """Quiet when well: something is said only after a second without an event."""
    stage = Stage()
    stage.people.connection(LIVE)
    stage.says("text")
    stage.after(0.5)
    assert stage.screen.text == "text"
    stage.after(1.5)
    assert stage.screen.text == "text\n2 s: live, 1 event shown, e1.4"


def test_a_running_tool_is_named_on_the_updating_line():
    stage = Stage(columns=80)
    stage.people.connection(LIVE)
    stage.says("", [ToolCalled("c1", "charge_card", {}, None)])
    stage.after(2)
    assert "charge_card is running" in stage.screen.text
    stage.says("", [ToolAnswered("c1", {})])
    stage.after(2)
    assert "charge_card" not in stage.screen.text


def test_elsewhere_each_is_a_plain_line():
    """Reconnecting, connected again and tools: no sequences, no updates."""
    stage = Stage(terminal=False)
    stage.people.connection(LIVE)
    stage.says("text", [ToolCalled("c1", "charge_card", {"cents": 1}, None)])
    stage.people.connection(WAITING)
    stage.people.connection(LIVE)
    stage.says("", [ToolAnswered("c1", {"error": {}})])
    stage.after(5)
    assert stage.out.getvalue() == "text"
    assert stage.err.getvalue().splitlines() == [
        'tool charge_card {"cents": 1}',
        "reconnecting in 3 s (attempt 4: connection reset)",
        "connected again, after e1.4",
        "tool charge_card failed",
    ]


def test_who_waits_for_more_than_a_second_is_told_for_what():
    stage = Stage(terminal=False)
    stage.people.waiting("starting")
    stage.after(0.9)
    assert stage.err.getvalue() == ""
    stage.after(0.2)
    stage.after(5)
    assert stage.err.getvalue() == "starting\n"


@pytest.mark.parametrize("text", ["\x1b]0;owned\x07", "\x1b[2J", "\x9b31m", "a\x08b", "\x7f"])
def test_a_server_cannot_send_sequences_to_a_terminal(text):
    """Escaped in text, in notes, in tools' names and in the end's words; a pipe gets the text as it is."""
    stage = Stage(columns=300)
    stage.says(text)
    stage.people.connection(LIVE)
    stage.says("", [ToolCalled("c1", text, {}, None)])
    stage.after(3)
    stage.people.note(text)
    stage.people.ended(Outcome(run_id=text, status=Status.FAILED))
    assert stage.screen.unknown == []
    for stream in (stage.out, stage.err):
        for control in ("\x07", "\x08", "\x7f", "\x9b", "\x1b]", "\x1b[2J"):
            assert control not in stream.getvalue()
    pipe = Stage(terminal=False)
    pipe.says(text)
    assert pipe.out.getvalue() == text


def test_a_terminals_prompt_begins_on_a_line_of_its_own():
    """A pipe gets the text and nothing more."""
    stage = Stage()
    stage.says("no newline")
    stage.people.close()
    assert (stage.screen.row, stage.screen.column) == (1, 0)
    pipe = Stage(terminal=False)
    pipe.says("no newline")
    pipe.people.close()
    assert pipe.out.getvalue() == "no newline"


def test_confirmed_text_is_shown_first_and_dimmed_on_a_terminal():
    """Said in words, too; a pipe has it already."""
    stage = Stage()
    stage.people.confirmed("before ", 3)
    stage.says("after")
    assert stage.screen.text == "shown before (3 events):\nbefore after"
    assert stage.out.getvalue() == "\x1b[2mbefore \x1b[0mafter"
    plain = Stage(color=False)
    plain.people.confirmed("before ", 3)
    assert "\x1b[2m" not in plain.out.getvalue()
    pipe = Stage(terminal=False)
    pipe.people.confirmed("before ", 3)
    assert pipe.out.getvalue() == ""


def test_many_events_that_come_again_are_said_where_they_begin_and_end():
    """A note at each would tear the text into a line a word: after a `cancel` from elsewhere hundreds may come again."""
    stage = Stage(terminal=False)
    for number in range(1, 5):
        stage.says(f"{number} ", redelivered=number < 4, cursor=f"e1.{number}")
    assert stage.out.getvalue() == "1 2 3 4 "
    assert stage.err.getvalue().splitlines() == [
        "(from event e1.1 on: what comes again may have been shown before)",
        "(from event e1.4 on: new)",
    ]


def test_a_gap_and_a_repetition_are_said():
    stage = Stage(terminal=False)
    stage.says("again", redelivered=True)
    stage.says("", gap=Gap(run_id="r", reason="expired", missing=87))
    assert "(from event e1.4 on: what comes again may have been shown before)" in stage.err.getvalue()
    assert "[87 events are missing: they are no longer kept]" in stage.err.getvalue()


def test_quiet_still_tells_a_bad_end():
    stage = Stage(terminal=False, quiet=True)
    stage.people.connection(WAITING)
    stage.people.ended(Outcome(run_id="r", status=Status.COMPLETED))
    assert stage.err.getvalue() == ""
    stage.people.ended(Outcome(run_id="r", status=Status.CANCELLED))
    assert stage.err.getvalue() == "run r cancelled\n"


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    stage = Stage(columns=80, color=False)
    stage.people.connection(WAITING)
    stage.after(2)
    assert "\x1b" not in stage.err.getvalue()
    assert stage.screen.text == "reconnecting in 3 s (attempt 4: connection reset)"
