"""I4."""

from chaos_history import (
    again,
    applied,
    asked,
    came,
    committed,
    exited,
    finished,
    holds,
    killed,
    log,
    says,
    shown,
    silent,
    wrong,
)
from reattach_chaos.checkers import marks
from reattach_chaos.history import Lease

GOOD = [committed(1), shown(1), applied(1), committed(3), shown(2, 3), applied(3)]


def test_applied_delivered_committed_in_this_order_are_right():
    """A commit may be ahead, and takes in all before it."""
    assert holds(says(marks, log(3), GOOD, asked(3)))


def test_a_client_that_tells_no_commits_is_not_judged():
    """What it does not say is not held against it."""
    assert silent(says(marks, log(3), shown(1, 2, 3), asked(3)))


def test_what_is_shown_before_it_is_durable_is_undurable():
    """The witness is the showing and the commit that came too late, where one came."""
    assert wrong(says(marks, log(3), shown(1), committed(1, 2), shown(2))) == (
        "undurable",
        "event 1 (e1.1) was shown before it was durable",
        ["delivered", "committed"],
    )
    assert wrong(says(marks, log(3), committed(1, 9), shown(1, 2)))[2] == ["delivered"]
    assert wrong(says(marks, log(3), shown(2), committed(1, 9)))[2] == ["delivered"]


def test_what_is_asked_after_must_be_durable():
    """Never what was only received."""
    assert wrong(says(marks, log(3), committed(1), came(2), asked(2), committed(2)))[2] == ["committed", "resume"]
    assert says(marks, log(4), committed(1, 2), asked(3), committed(3)).witness[0].id == "e1.2"
    assert wrong(says(marks, log(3), committed(1), came(2), asked(2))) == (
        "undurable",
        "the client asked after event 2 (e1.2) when event 1 (e1.1) was durable",
        ["committed", "resume"],
    )
    words = wrong(says(marks, log(3), asked(2), committed(1)))[1]
    assert words == "the client asked after event 2 (e1.2) when nothing was durable"
    assert holds(says(marks, log(3), asked(None), committed(1), asked(1)))


def test_what_is_confirmed_must_have_been_shown():
    """An event that nobody saw cannot be done with."""
    assert wrong(says(marks, log(3), committed(2), shown(1), applied(2), shown(2))) == (
        "undurable",
        "event 2 (e1.2) was confirmed before it was shown",
        ["applied"],
    )
    assert holds(says(marks, log(3), committed(2), shown(1, 9), applied(9, 1)))


def test_what_is_lost_by_it_is_told_here():
    """The attach and the loss are one bug."""
    ruling = says(
        marks, log(3), committed(1), shown(1), came(2), asked(2, conn=2), committed(3), shown(3), finished(), exited()
    )
    assert ruling.count == 2
    assert wrong(ruling)[0] == "undurable"


def test_what_a_later_process_shows_marked_was_in_the_journal():
    """A kill may come between a commit and the word of it; without the mark, or without a kill, it proves nothing."""
    assert holds(says(marks, log(3), committed(1), shown(1), killed(), again(2), asked(2, conn=2)))
    assert holds(says(marks, log(3), Lease(token=1), committed(1), shown(1), Lease(token=2), again(2)))
    assert wrong(says(marks, log(3), committed(1), shown(1), killed(), shown(2)))[0] == "undurable"
    assert wrong(says(marks, log(3), committed(1), shown(1), again(2)))[0] == "undurable"


def test_marks_are_the_stores_not_the_processs():
    """A commit of the first life counts in the second."""
    assert holds(says(marks, log(3), committed(2), shown(1), killed(), shown(2, life=2)))
