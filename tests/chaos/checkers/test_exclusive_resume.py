"""I5."""

from dataclasses import replace

from chaos_history import asked, came, committed, cut, exited, finished, holds, log, says, shown, silent, wrong
from reattach_chaos.checkers import exclusive_resume
from reattach_chaos.history import Received, Resume, ResumeRejected, Server


def test_the_successor_comes_first():
    """Parts of events, and attaches without a cursor, say nothing."""
    first = [asked(None), came(1, 2), shown(1, 2)]
    again = [asked(2, conn=2), came(3, conn=2, whole=False), came(3, conn=2), shown(3)]
    assert holds(says(exclusive_resume, log(3), first, again, finished(), exited()))
    assert silent(says(exclusive_resume, log(3), first))


def test_what_was_asked_past_and_comes_again_must_not_be_shown():
    """The server sent it, the client should have dropped it."""
    ruling = says(exclusive_resume, log(3), came(1, 2), shown(1, 2), asked(2, conn=2), came(2, conn=2), shown(2))
    assert wrong(ruling) == (
        "duplicated",
        "event 2 (e1.2) was shown again, though the client had asked to go on after it",
        ["delivered", "resume", "delivered"],
    )


def test_what_was_not_asked_past_is_a_plain_duplicate():
    """A repeat without an attach, on a connection without a number, or after an attach before it."""
    assert silent(says(exclusive_resume, log(3), came(1), shown(1, 1)))
    assert silent(says(exclusive_resume, log(3), [Received(id="e1.1")], shown(1, 1)))
    repeat = [came(1, 2), shown(1, 2), asked(1, conn=2), came(2, conn=2), shown(2)]
    assert holds(says(exclusive_resume, log(3), repeat))


def test_the_server_must_not_begin_elsewhere():
    """Not at the cursor itself, not behind the successor."""
    assert wrong(says(exclusive_resume, log(3), asked(1), came(1), shown(1))) == (
        "duplicated",
        "asked after event 1 (e1.1), the server first sent event 1 (e1.1)",
        ["resume", "received"],
    )
    assert wrong(says(exclusive_resume, log(3), shown(1, 2, 3), asked(1), came(3)))[0] == "lost"


def test_what_we_broke_ourselves_is_not_the_servers():
    """A span that the gate sent twice, an event that was left out on purpose; a cursor that is not of this log."""
    assert holds(says(exclusive_resume, log(3), cut("duplicate"), asked(1), came(1)))
    assert holds(says(exclusive_resume, log(3), Server(did="skipped"), shown(1, 2, 3), asked(1), came(3)))
    assert holds(says(exclusive_resume, log(3), asked(9), came(1)))
    assert holds(says(exclusive_resume, log(3), asked(1), came(9), asked(2, conn=2)))
    assert holds(says(exclusive_resume, log(2, settles=None), asked(1), log(2, epoch="e2"), came(1, epoch="e2")))


def test_a_cursor_of_a_log_that_was_replaced_is_of_no_other_log():
    """The server takes its number in the new log; whoever had asked before that is answered rightly."""
    new_log = [Server(did="epoch", epoch="e2"), log(4, epoch="e2")]
    assert wrong(
        says(exclusive_resume, log(2, settles=None), new_log, asked(2, conn=2), came(3, 4, conn=2, epoch="e2"))
    ) == (
        "silent gap",
        "asked after event 2 (e1.2), whose log had been replaced, the server sent event 3 (e2.3) of the new one",
        ["resume", "received"],
    )
    before = [log(2, settles=None), asked(2, conn=2), new_log]
    assert holds(says(exclusive_resume, before, came(3, conn=2, epoch="e2")))
    anew = [asked(2, conn=2), asked(None, conn=2)]
    assert holds(says(exclusive_resume, log(2, settles=None), new_log, anew, came(1, conn=2, epoch="e2")))


def test_the_oldest_event_that_is_kept_is_there():
    """A server that calls it gone reads no cursor there; of an old cursor, a busy server, another connection that says nothing."""
    gone = ResumeRejected(status=410, code="cursor_expired", conn=2)
    oldest = [asked(1), came(2), replace(asked(None, conn=2), after="earliest")]
    assert wrong(says(exclusive_resume, log(3), oldest, gone)) == (
        "lost",
        "asked for the oldest event that it keeps, the server answered 410 cursor_expired",
        ["resume", "resume.rejected"],
    )
    assert holds(says(exclusive_resume, log(3), oldest, replace(gone, status=503, code="")))
    assert holds(says(exclusive_resume, log(3), oldest, replace(gone, conn=3)))
    assert holds(says(exclusive_resume, log(3), asked(1, conn=2), gone))
    assert holds(says(exclusive_resume, log(3), asked(1, conn=2), gone, oldest)), "the answer to what was asked before"


def test_what_the_client_asked_past_and_never_showed_is_lost():
    """It took what it had received for what it had shown."""
    ruling = says(
        exclusive_resume,
        log(3),
        came(1, 2),
        shown(1),
        asked(2, conn=2),
        came(3, conn=2),
        shown(3),
        finished(),
        exited(),
    )
    assert wrong(ruling) == (
        "lost",
        "event 2 (e1.2) was never shown: the client asked after e1.2",
        ["logged", "resume"],
    )


def test_where_commits_are_told_the_marks_say_so():
    """One bug, one sentence."""
    told = [committed(1), shown(1), asked(2, conn=2), shown(3), finished(), exited()]
    assert holds(says(exclusive_resume, log(3), told))


def test_another_clients_attach_says_nothing_of_ours():
    """Each has its own connections."""
    assert silent(says(exclusive_resume, log(3), Resume(after=None, who="other"), came(2, who="other")))
