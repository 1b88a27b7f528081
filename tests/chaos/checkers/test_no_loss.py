"""I1."""

from dataclasses import replace

from chaos_history import (
    again,
    asked,
    came,
    error,
    exited,
    finished,
    gap,
    holds,
    killed,
    log,
    refused,
    says,
    shown,
    streams,
    wrong,
)
from reattach_chaos.checkers import Unknown, no_loss
from reattach_chaos.history import Server, Status

END = [finished(), exited(0)]


def test_a_log_that_was_shown_is_not_lost():
    """By the SSE ids or by the events' own."""
    assert holds(says(no_loss, log(3), shown(1, 2, 3), END))
    own = [replace(record, id=f"evt_e1_{number}") for number, record in enumerate(shown(1, 2, 3), 1)]
    assert holds(says(no_loss, log(3), own, END))


def test_a_lost_event_is_named():
    """An event that the server logged and no view ever shows is lost; the next one shown is the witness."""
    assert wrong(says(no_loss, log(3), shown(1, 3), END)) == (
        "lost",
        "event 2 (e1.2) was never shown",
        ["logged", "delivered"],
    )


def test_an_event_that_came_and_was_dropped_is_lost():
    """The wire is a witness: the client had it in hand."""
    ruling = says(no_loss, log(3), asked(None), streams(), came(1, 2, 3), shown(1, 3), END)
    assert wrong(ruling)[2] == ["logged", "received", "delivered"]


def test_an_event_dropped_before_later_ones_is_dropped_though_it_was_asked_past_later():
    """Dedupe by text, then a cut: the attach is behind it only because the client had gone on."""
    ruling = says(no_loss, log(3), asked(None), came(1, 2), shown(1), came(3), shown(3), asked(3, conn=2), END)
    assert wrong(ruling)[0] == "lost"


def test_the_log_is_asked_for():
    """An empty log proves nothing."""
    assert says(no_loss, shown(1), END) == Unknown("the server's log is empty: nothing was played")


def test_what_a_silent_leaver_has_not_shown_is_lost():
    """A loop without reconnect ends with its stream, and says nothing."""
    ruling = says(no_loss, log(4), shown(1, 2), exited(0))
    assert wrong(ruling) == ("lost", "event 3 (e1.3) was never shown", ["logged"])
    assert ruling.count == 2


def test_what_was_told_is_not_lost():
    """A gap covers what lies between what was shown before and after it; an error what would have come."""
    assert holds(says(no_loss, log(5), shown(1), gap(), shown(4, 5), END))
    assert holds(says(no_loss, log(5), shown(1), gap(), exited(1)))
    assert holds(says(no_loss, log(5), shown(1), error(), exited(1)))


def test_a_gap_covers_nothing_else():
    """What is missing elsewhere is lost all the same."""
    ruling = says(no_loss, log(6), shown(1, 3), gap(), shown(5, 6), END)
    assert wrong(ruling)[1] == "event 2 (e1.2) was never shown"
    assert ruling.count == 1


def test_an_error_that_tells_a_gap_covers_it():
    """Who attaches again goes on behind it; another error covers no hole."""
    assert holds(says(no_loss, log(5), shown(1), error("cursor_expired"), shown(4, 5), END))
    assert wrong(says(no_loss, log(5), shown(1), error("commit_failed"), shown(4, 5), END))[0] == "lost"


def test_what_we_stopped_is_not_lost():
    """Nor what a kill without a new start kept back: those are other laws'."""
    assert holds(says(no_loss, log(3), shown(1), exited(None)))
    assert holds(says(no_loss, log(3), shown(1), killed()))
    assert holds(says(no_loss, log(3), shown(1)))


def test_what_has_another_cause_is_told_by_its_law():
    """False ends are I11's, half events I6's, cursors past the shown I5's, refusals I18's."""
    assert holds(says(no_loss, log(3), shown(1), finished(), exited(0)))
    assert holds(says(no_loss, log(3), came(1), shown(1), came(2, whole=False), asked(2, conn=2), shown(3), END))
    assert holds(says(no_loss, log(3), came(1, 2), shown(1), asked(2, conn=2), shown(3), END))
    assert holds(says(no_loss, log(3), came(1), shown(1), asked(1, conn=2), refused(conn=2), shown(3), END))


def test_an_event_of_a_log_that_was_replaced_is_not_required():
    """Nor one whose number was given again after a lost tail."""
    assert holds(says(no_loss, log(3, settles=None), shown(1), gap(), log(2, epoch="e2"), shown(1, 2, epoch="e2"), END))
    lost_tail = [replace(event, id=f"{event.id}b") for event in log(3, first=3)]
    new = [replace(record, id="evt_e1_3b") for record in shown(3)]
    assert holds(says(no_loss, log(3, settles=None), lost_tail, shown(1, 2), new, END))


def test_another_content_is_changed():
    """Where both sides told a digest."""
    logged = [replace(event, sha256="a") for event in log(2)]
    assert wrong(says(no_loss, logged, shown(1, sha256="a"), shown(2, sha256="b"), END)) == (
        "changed",
        "event 2 (e1.2) was shown with another content than the log's",
        ["logged", "delivered"],
    )
    assert holds(says(no_loss, log(2), shown(1, sha256="b"), shown(2), shown(9), END))


def replayed(*numbers, **facts):
    whole = log(max(numbers), by="replay", **facts)
    return [whole[number - 1] for number in numbers]


def test_the_replay_is_the_log():
    """Read again after the end: nothing missing, nothing new, nothing else, in the same order."""
    good = [log(3), shown(1, 2, 3), END]
    assert holds(says(no_loss, *good, replayed(1, 2, 3)))
    assert holds(says(no_loss, *good, replayed(2, 3)))  # the first was trimmed
    assert wrong(says(no_loss, *good, replayed(1, 3)))[:2] == (
        "lost",
        "event 2 (e1.2) was in the log and is not in its replay",
    )
    assert wrong(says(no_loss, *good, replayed(1, 2, 3, 4)))[0] == "foreign"
    assert wrong(says(no_loss, *good, replayed(2, 1, 3)))[0] == "reordered"
    other = [replace(event, sha256="b") for event in replayed(1, 2, 3)]
    assert wrong(says(no_loss, *good, other))[0] == "changed"


def test_a_replay_of_another_run_is_foreign():
    """The control reader has no log of it."""
    runs = [log(1, run="r1"), log(1, run="r2", epoch="f1")]
    told = [*shown(1, run="r1"), *shown(1, run="r2", epoch="f1"), finished(run="r1"), finished(run="r2"), exited(0)]
    assert holds(says(no_loss, runs, told))
    assert wrong(says(no_loss, runs, told, log(1, run="r3", by="replay")))[0] == "foreign"


def test_a_dead_event_may_be_missing_in_the_replay():
    """The log was replaced between."""
    tail = [replace(event, id=f"{event.id}b") for event in log(3, first=2)]
    now = [log(1, settles=None)[0], *tail]
    again_read = [replace(event, by="replay") for event in now]
    told = [replace(record, id=event.id) for record, event in zip(shown(1, 2, 3), now, strict=True)]
    assert holds(says(no_loss, log(3, settles=None), tail, told, END, again_read))


def test_each_run_has_its_own_log():
    """Equal ids of two runs are two events."""
    ruling = says(no_loss, log(2, run="r1"), log(2, run="r2"), shown(1, 2, run="r1"), again(1, run="r2"), END)
    assert wrong(ruling)[1] == "event 2 (e1.2) was never shown" or holds(ruling)


def test_a_tail_that_was_lost_is_not_required():
    """A number given again ends all from there on; what nobody could know of is not lost by the client."""
    tail = [replace(event, id=f"{event.id}b") for event in log(3, first=3)]
    logs = [log(5, settles=None), tail, Status(status="completed")]
    end = [replace(record, id="evt_e1_3b") for record in shown(3)]
    assert holds(says(no_loss, logs, shown(1, 2), end, END))
    assert wrong(says(no_loss, logs, shown(1, 2), replace(end[0], id="evt_e1_3"), END))[0] == "lost"
    assert holds(says(no_loss, logs, Server(did="lost"), shown(1, 2), replace(end[0], id="evt_e1_3"), END))
    assert wrong(says(no_loss, logs, Server(did="lost"), shown(1, 2), END))[0] == "lost"


def test_who_had_read_the_end_misses_nothing_of_a_log_that_comes_later():
    """The end had come whole before the log was replaced, and was shown; all that came before it has to be shown as ever."""
    logs, later = [log(2), log(3, epoch="e2")], Server(did="epoch", epoch="e2")
    assert holds(says(no_loss, logs, came(1, 2), later, shown(1, 2), exited(0)))
    assert wrong(says(no_loss, logs, came(1), later, shown(1), exited(0)))[0] == "lost"
    assert wrong(says(no_loss, logs, came(1), came(2, whole=False), later, shown(1), exited(0)))[0] == "lost"
    assert holds(says(no_loss, logs, came(1), later, came(2), shown(1, 2), exited(0)))
    again = asked(1, conn=2)
    assert wrong(says(no_loss, logs, came(1), later, again, came(2, conn=2), shown(1, 2), exited(0)))[0] == "lost"
    assert wrong(says(no_loss, logs, came(1, 2), later, exited(0)))[0] == "lost"
    assert wrong(says(no_loss, logs, came(1, 2), later, shown(2), exited(0)))[1] == "event 1 (e1.1) was never shown"
    assert wrong(says(no_loss, logs, came(1, 2), later, shown(1, 2), asked(2), exited(0)))[0] == "lost"
