"""I18, I23, I25."""

from dataclasses import replace

import pytest

from chaos_history import (
    asked,
    came,
    error,
    exited,
    finished,
    gap,
    holds,
    log,
    refused,
    says,
    shown,
    silent,
    streams,
    wrong,
)
from reattach_chaos.checkers import caused_gap, honest_gap, journal
from reattach_chaos.history import Journal, Server

REFUSED = [came(1), shown(1), asked(1), refused()]
RESTART = [asked(None, conn=2), streams(2), came(3, conn=2)]
END = [finished(), exited(0)]


def test_a_gap_that_is_told_is_honest():
    """Or an error; before the next event."""
    assert holds(says(honest_gap, log(3), REFUSED, gap(), RESTART, shown(3), END))
    assert holds(says(honest_gap, log(3), REFUSED, error("CursorExpired"), RESTART, shown(3)))


def test_a_silent_restart_is_a_silent_gap():
    """The witness is the refusal, the stream that went on elsewhere, and the event."""
    assert wrong(says(honest_gap, log(3), REFUSED, RESTART, shown(3), END)) == (
        "silent gap",
        "after 410 cursor_expired event 3 (e1.3) was shown, and no gap was told",
        ["resume.rejected", "resume.ok", "delivered"],
    )


def test_a_cursor_that_is_taken_after_all_is_no_gap():
    """The refusal passed; so did one of another kind."""
    assert holds(says(honest_gap, log(2), REFUSED, asked(1, conn=2), streams(2), came(2, conn=2), shown(2), END))
    busy = [came(1), shown(1), asked(1), refused(503, "busy"), asked(None, conn=2), streams(2), came(2, conn=2)]
    assert silent(says(honest_gap, log(2), busy, shown(2), END))


def test_where_nothing_is_missing_nothing_need_be_told():
    """What was refused was asked before the rest was on disk; what was shown then goes on without a hole."""
    early = [came(1, 2), asked(None), refused(), shown(1, 2), asked(2, conn=2), streams(2), came(3, 4, conn=2)]
    assert holds(says(honest_gap, log(4), early, shown(3, 4), END))
    assert wrong(says(honest_gap, log(4), early, shown(4), END))[0] == "silent gap"
    first = [asked(None), refused(), asked(1, conn=2), streams(2), came(1, conn=2)]
    assert holds(says(honest_gap, log(1), first, shown(1), END))


def test_what_had_come_before_the_refusal_may_still_be_shown():
    """It is from the journal; what was shown before, too."""
    history = [came(1, 2), shown(1), asked(2), refused(), asked(None, conn=2), streams(2), shown(9, 2), gap(), END]
    assert holds(says(honest_gap, log(2), history))


def test_a_second_refusal_in_a_row_is_one_break():
    """The stream that went on is judged by the first."""
    twice = [came(1), shown(1), asked(1), refused(), asked(1, conn=2), refused(conn=2), asked(None, conn=3), streams(3)]
    assert wrong(says(honest_gap, log(3), twice, came(3, conn=3), shown(3)))[0] == "silent gap"


def test_events_of_another_epoch_need_a_word():
    """Their numbers must not be mixed."""
    logs = [log(2, settles=None), log(2, epoch="e2")]
    assert wrong(says(honest_gap, logs, shown(1, 2), shown(1, epoch="e2"))) == (
        "silent gap",
        "event 1 (e2.1) is of another epoch than event 2 (e1.2); no gap was told",
        ["delivered", "delivered"],
    )
    assert holds(says(honest_gap, logs, shown(1, 2), gap(), shown(1, 2, epoch="e2"), END))


def test_what_was_refused_and_never_came_is_a_silent_gap():
    """The client left it at that, and told an end."""
    ruling = says(honest_gap, log(3), came(1), shown(1), asked(1), refused(), came(3, conn=2), shown(3), END)
    assert wrong(ruling)[:2] == (
        "silent gap",
        "event 2 (e1.2) was never shown: the server had refused to go on (410 cursor_expired)",
    )


def test_a_gap_says_how_much_is_missing():
    """Where both its ends are in one epoch of the log."""
    told = gap(after="e1.1", until="e1.3", missing=2)
    assert holds(says(honest_gap, log(4), told))
    assert wrong(says(honest_gap, log(4), replace(told, missing=1))) == (
        "silent gap",
        "a gap of 1 events was told; from event 1 (e1.1) to event 3 (e1.3) are 2",
        ["logged", "surfaced"],
    )
    for vague in (
        replace(told, missing=None),
        replace(told, after=None, missing=9),
        replace(told, until="e9.9", missing=9),
    ):
        assert holds(says(honest_gap, log(4), vague))
    tail = [replace(event, id=f"{event.id}b") for event in log(3, first=2)]
    assert holds(says(honest_gap, log(2, settles=None), tail, told))
    across = replace(told, until="e2.1", missing=9)
    assert holds(says(honest_gap, log(4, settles=None), log(1, epoch="e2"), across))


CAUSES = {
    "trimmed": Server(did="trimmed"),
    "a new epoch": Server(did="epoch"),
    "refused": refused(),
    "a hole on the wire": came(1, 3),
    "an unknown event on the wire": came(1, 9),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_gap_has_a_cause(cause):
    """The server lost, trimmed, replaced, skipped or refused something before it was told."""
    assert holds(says(caused_gap, log(3), CAUSES[cause], gap()))


@pytest.mark.parametrize(
    "nothing", [[], came(1, 2), came(1, 2, who="other"), Server(did="killed"), [gap(), came(1, 3)][1:]][:4]
)
def test_a_gap_without_a_cause_is_false(nothing):
    """A restart loses nothing; what comes later is no cause."""
    assert wrong(says(caused_gap, log(3), nothing, gap(reason="expired"), came(1, 3), refused())) == (
        "false gap",
        "a gap was told (expired), and the server had refused and lost nothing",
        ["surfaced"],
    )


def test_a_gap_without_a_reason_is_still_judged():
    """A foreign client need not name one; an error is none."""
    assert "(no reason)" in wrong(says(caused_gap, log(3), gap()))[1]
    assert silent(says(caused_gap, log(3), error()))


def kept(*numbers, **facts):
    return Journal(ids=tuple(None if number is None else f"evt_e1_{number}" for number in numbers), **facts)


def test_a_journal_is_the_log_without_holes():
    """A prefix of it; a Gap may part it, or begin it."""
    assert holds(says(journal, log(5), kept(1, 2, 3)))
    assert holds(says(journal, log(5), kept(1, None, 4, 5)))
    assert holds(says(journal, log(5), kept(None, 4, 5)))
    assert silent(says(journal, log(5), kept()))


def test_a_journal_may_go_over_what_the_log_has_no_more():
    """A lost tail whose numbers were given again."""
    tail = [replace(event, id=f"{event.id}b") for event in log(3, first=3)]
    whole = Journal(ids=("evt_e1_1", "evt_e1_2", "evt_e1_3b"))
    assert holds(says(journal, log(3, settles=None), tail, whole))


@pytest.mark.parametrize(
    ("numbers", "anomaly", "words"),
    [
        ((1, 3), "lost", "in the journal event 3 (e1.3) comes behind event 1 (e1.1)"),
        ((2, 3), "lost", "in the journal event 2 (e1.2) comes behind nothing"),
        ((1, 2, 2), "duplicated", "in the journal event 2 (e1.2) comes behind event 2 (e1.2)"),
    ],
)
def test_a_hole_in_the_journal_is_named(numbers, anomaly, words):
    """Whatever failed before."""
    assert wrong(says(journal, log(4), kept(*numbers))) == (anomaly, words, ["logged", "journal"])


def test_a_journal_with_a_stranger_in_it():
    """An event that the log never had."""
    assert wrong(says(journal, log(2), kept(1, 9, 2)))[:2] == (
        "foreign",
        "the journal holds evt_e1_9, which is not in the log",
    )
