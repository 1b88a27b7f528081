"""The judge on hand-written showings, good and bad: each anomaly has its name, and nothing else is named."""

import pytest

from reattach_chaos.demo.judge import Anomaly, judge_effects, judge_runs, judge_showing, judge_wire
from reattach_chaos.demo.showing import Logged, Showing, Shown

LOG = [
    Logged(sequence=1, id="a", type="run.created", content="{}", sha256="1"),
    Logged(sequence=2, id="b", type="message.delta", content='{"text":"x"}', text="x", sha256="2"),
    Logged(sequence=3, id="c", type="status", content='{"text":"y"}', sha256="3"),
    Logged(sequence=4, id="d", type="run.completed", content="{}", sha256="4"),
]
BY_ID = {event.id: event for event in LOG}


def shown(letters: str, life: int = 0, *, redelivered: str = "", **changes: object) -> list[Shown]:
    """The events with these ids, as they are in the log; those named in `redelivered` carry the mark."""
    return [
        Shown(
            **{
                "id": letter,
                "sequence": BY_ID[letter].sequence,
                "type": BY_ID[letter].type,
                "content": BY_ID[letter].content,
                "text": BY_ID[letter].text,
                "redelivered": letter in redelivered,
                "life": life,
                **changes,
            }
        )
        for letter in letters
    ]


def judged(
    *parts: list[Shown], status: str | None = "completed", stopped: bool = False
) -> list[tuple[str, int | None]]:
    showing = Showing(who="FIN", shown=[each for part in parts for each in part], status=status, stopped=stopped)
    return [(anomaly.kind, anomaly.sequence) for anomaly in judge_showing(LOG, showing).anomalies]


def test_all_once_in_order_is_good():
    """The log, exactly."""
    assert judged(shown("abcd")) == []


def test_an_event_that_is_never_shown_is_lost():
    """Also in the middle: what comes after it does not make up for it."""
    assert judged(shown("acd")) == [("lost", 2)]


def test_a_client_that_stops_early_loses_the_rest():
    """An end of stream is no end of the run."""
    assert judged(shown("ab"), status=None) == [("lost", 3), ("lost", 4)]


def test_what_a_client_that_we_stopped_did_not_show_is_not_known_to_be_lost():
    """Time was up: not proven."""
    assert judged(shown("ab"), status=None, stopped=True) == []


def test_an_event_shown_twice_in_one_life_is_duplicated():
    """Without a death there is no reason to show anything again, marked or not."""
    assert judged(shown("ab"), shown("b", redelivered="b"), shown("cd")) == [("duplicated", 2)]


def test_the_event_in_hand_may_come_again_after_a_kill_if_it_is_marked():
    """At most one a kill: the last one shown."""
    showing = Showing(who="k", shown=[*shown("ab"), *shown("bcd", 1, redelivered="b")], kills=1, status="completed")
    judgement = judge_showing(LOG, showing)
    assert (judgement.anomalies, judgement.again) == ((), 1)


def test_a_repeat_without_the_mark_is_a_duplicate():
    """Also that of the event in hand."""
    assert judged(shown("ab"), shown("bcd", 1)) == [("duplicated", 2)]


def test_more_than_one_repeat_a_kill_is_a_duplicate():
    """Only one event was in hand."""
    assert judged(shown("abc"), shown("bcd", 1, redelivered="bc")) == [("duplicated", 2), ("duplicated", 3)]


def test_the_event_in_hand_may_come_again_after_each_kill():
    """A client that is killed again with the same event in hand shows it again."""
    again = [*shown("ab"), *shown("b", 1, redelivered="b"), *shown("bcd", 2, redelivered="b")]
    judgement = judge_showing(LOG, Showing(who="k", shown=again, kills=2, status="completed"))
    assert (judgement.anomalies, judgement.again) == ((), 2)


def test_the_same_event_twice_after_one_kill_is_a_duplicate():
    """Once a kill, not twice."""
    assert judged(shown("ab"), shown("b", 1, redelivered="b"), shown("bcd", 1, redelivered="b")) == [("duplicated", 2)]


def test_an_event_that_was_in_hand_and_not_shown_yet_is_no_repeat():
    """Killed just before it showed the event: the mark is there, the event comes once."""
    showing = Showing(who="k", shown=[*shown("ab"), *shown("cd", 1, redelivered="c")], kills=1, status="completed")
    judgement = judge_showing(LOG, showing)
    assert (judgement.anomalies, judgement.again) == ((), 0)


def test_an_event_shown_after_a_later_one_is_reordered():
    """It is not lost, and not in order."""
    assert judged(shown("acbd")) == [("reordered", 2)]


@pytest.mark.parametrize("change", [{"content": '{"text": "x"}'}, {"type": "x"}, {"sequence": 9}, {"text": "z"}])
def test_an_event_shown_otherwise_than_logged_is_changed(change):
    """Byte for byte: one blank is a difference."""
    assert judged(shown("a"), shown("b", **change), shown("cd")) == [("changed", 2)]


def test_an_event_of_another_run_is_foreign():
    """Its id is not in this log."""
    stranger = Shown(id="z", content="{}")
    assert judged(shown("ab"), [stranger], shown("cd")) == [("foreign", None)]


@pytest.mark.parametrize(
    ("status", "found"), [("completed", []), ("failed", [("false end", 4)]), ("running", [("false end", 4)])]
)
def test_the_end_that_is_told_is_the_logs(status, found):
    """Completed, failed, cancelled, paused: only with the log's own word."""
    assert judged(shown("abcd"), status=status) == found


def test_paused_is_another_word_for_requires_action():
    """A client under test may say either (surface, section 3)."""
    log = [Logged(sequence=1, id="a", type="run.paused", content="{}")]
    for word in ("paused", "requires_action"):
        assert (
            judge_showing(
                log, Showing(who="x", shown=[Shown(id="a", sequence=1, type="run.paused", content="{}")], status=word)
            ).anomalies
            == ()
        )


def test_the_first_event_concerned_is_named():
    """A person reads the sequence and the type."""
    (anomaly,) = judge_showing(LOG, Showing(who="RST 2", shown=shown("abd"), status="completed")).anomalies
    assert anomaly == Anomaly(kind="lost", who="RST 2", sequence=3, message="event 3 (status) was never shown")


def test_one_run_is_one_run():
    """However many creates asked for it."""
    assert judge_runs(1, 2) == judge_runs(0, 0) == []
    assert [anomaly.kind for anomaly in judge_runs(2, 2)] == ["second run"]


def test_each_call_has_its_effect_once():
    """By operation id: none too few, none too many, none without a call."""
    called = [(5, "op_1"), (7, "op_2")]
    assert judge_effects(called, ["op_1", "op_2"]) == []
    found = judge_effects(called, ["op_1", "op_1", "op_3"])
    assert [(anomaly.kind, anomaly.sequence) for anomaly in found] == [
        ("missing effect", 7),
        ("double effect", 5),
        ("double effect", None),
    ]


def test_the_wire_carries_the_logs_bytes():
    """Every delivery of an event is the same bytes; the first that is not is told once."""
    assert judge_wire(LOG, [("fin", 1, "1"), ("rst", 1, "1"), ("fin", 2, "2")]) == []
    found = judge_wire(LOG, [("fin", 2, "other"), ("rst", 2, "other"), ("fin", 9, "9")])
    assert [(anomaly.kind, anomaly.sequence) for anomaly in found] == [("changed", 2), ("changed", 9)]
