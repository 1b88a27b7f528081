"""I2."""

from chaos_history import (
    again,
    applied,
    asked,
    came,
    committed,
    error,
    exited,
    gap,
    holds,
    killed,
    log,
    says,
    shown,
    wrong,
)
from reattach_chaos.checkers import no_double
from reattach_chaos.history import Effect, Lease


def test_once_is_right():
    """Each event once; what is not in the log is another law's."""
    assert holds(says(no_double, log(3), shown(1, 2, 3, 9, 9)))


def test_twice_in_one_life_is_duplicated():
    """Also where the second is marked: nothing had happened between."""
    assert wrong(says(no_double, log(3), shown(1, 2, 2))) == (
        "duplicated",
        "event 2 (e1.2) was shown twice",
        ["delivered", "delivered"],
    )
    assert wrong(says(no_double, log(3), shown(1), again(1)))[1] == "event 1 (e1.1) was shown twice"


def test_after_a_kill_a_marked_line_may_repeat_any_event():
    """Where the client tells no marks of its own, nobody knows what it had confirmed."""
    assert holds(says(no_double, log(3), shown(1, 2, 3), killed(), again(1, 2, 3)))


def test_what_was_confirmed_before_the_kill_is_not_shown_again():
    """Only what lies above the applied mark comes again."""
    assert holds(says(no_double, log(3), shown(1), applied(1), shown(2), killed(), again(2)))
    assert wrong(says(no_double, log(3), shown(1), applied(1), shown(2), killed(), again(1)))[1] == (
        "event 1 (e1.1) was shown again, though it was confirmed before"
    )


def test_after_a_kill_the_last_line_alone_may_come_again_without_a_mark():
    """Once a kill; anything more is duplicated."""
    assert holds(says(no_double, log(3), shown(1, 2), killed(), shown(2, 3)))
    assert holds(says(no_double, log(3), shown(1, 2), killed(), shown(2), killed(), shown(2, 3)))
    words = "was shown again after a kill, and was not the last one shown"
    assert words in wrong(says(no_double, log(3), shown(1, 2), killed(), shown(1, 2)))[1]
    assert words in wrong(says(no_double, log(3), shown(1, 2, 3), killed(), shown(3, 2)))[1]


def test_a_second_repeat_after_one_kill_is_duplicated():
    """The one repeat is used up, whoever asks."""
    assert wrong(says(no_double, log(3), shown(1), killed(), shown(1), shown(1)))[1] == "event 1 (e1.1) was shown twice"
    ruling = says(no_double, log(3), shown(1), killed(life=1), again(1), shown(1))
    assert wrong(ruling)[1] == "event 1 (e1.1) was shown twice"


def test_a_client_that_marks_must_mark():
    """The case says so of it."""
    assert wrong(says(no_double, log(3), shown(1), killed(), shown(1), marks=True))[1] == (
        "event 1 (e1.1) was shown again after a kill, not marked redelivered"
    )
    assert holds(says(no_double, log(3), shown(1), killed(), again(1), marks=True))


def test_a_process_that_ended_by_itself_may_begin_again():
    """As after a kill."""
    assert holds(says(no_double, log(3), shown(1), exited(1), again(1, 2)))


def test_who_takes_the_store_over_may_repeat_what_it_marks():
    """The other process may be asleep, not dead; without the mark it is two that apply."""
    assert holds(says(no_double, log(3), Lease(token=1), shown(1), Lease(token=2), again(1, 2)))
    assert wrong(says(no_double, log(3), Lease(token=1), shown(1), Lease(token=2), shown(1)))[0] == "duplicated"


def test_behind_a_gap_the_stream_may_go_on_earlier():
    """At the oldest event kept, say; not before what the gap names, and not without it."""
    assert holds(says(no_double, log(3), shown(1, 2), gap(until="e1.0"), shown(1, 2, 3)))
    assert holds(says(no_double, log(3), shown(1, 2), gap(), shown(1, 2, 3)))
    assert holds(says(no_double, log(3), shown(1, 2), gap(until="e1.1"), shown(2, 3)))
    assert wrong(says(no_double, log(3), shown(1, 2), gap(until="e1.2"), shown(2, 3)))[0] == "duplicated"
    assert wrong(says(no_double, log(3), shown(1, 2), error(), shown(2, 3)))[0] == "duplicated"
    assert wrong(says(no_double, log(3), gap(until="e1.0"), shown(1, 1)))[0] == "duplicated"


def test_what_was_asked_past_and_came_again_is_the_exclusive_resumes():
    """So that it is told once."""
    assert holds(says(no_double, log(3), came(1), shown(1), asked(1, conn=2), came(1, conn=2), shown(1)))


def test_what_was_shown_before_it_was_durable_is_the_marks():
    """It comes again because it was not saved."""
    assert holds(says(no_double, log(3), committed(1), shown(1, 2), killed(), committed(2), shown(2), marks=True))


def test_a_handlers_effect_stands_once():
    """In its own tables; the server's tools are another law's."""
    rows = [Effect(who="client", operation_id="evt_1"), Effect(who="client", operation_id="evt_1")]
    assert wrong(says(no_double, log(1), rows)) == (
        "double effect",
        "the handler's effect evt_1 stands twice",
        ["effect", "effect"],
    )
    assert holds(says(no_double, log(1), rows[0], Effect(who="server", operation_id="evt_1")))
