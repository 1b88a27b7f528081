"""I3."""

from chaos_history import again, applied, gap, holds, killed, log, says, shown, wrong
from reattach_chaos.checkers import order


def test_the_logs_order_is_right():
    """Holes do not matter here, repeats neither."""
    assert holds(says(order, log(4), shown(1, 2, 4), killed(), again(2)))


def test_an_event_after_a_later_one_is_reordered():
    """The witness is both showings."""
    assert wrong(says(order, log(3), shown(1, 3, 2))) == (
        "reordered",
        "event 2 (e1.2) was shown after event 3 (e1.3)",
        ["delivered", "delivered"],
    )


def test_what_is_not_in_the_log_has_no_order():
    """It is foreign, which another law tells."""
    assert holds(says(order, log(3), shown(1, 9, 2)))


def test_a_mark_does_not_fall():
    """What is confirmed stays confirmed, within a life; a kill may lose a mark."""
    assert holds(says(order, log(3), shown(1, 2), applied(1, 2, 9, 2)))
    assert wrong(says(order, log(3), shown(1, 2), applied(2, 1))) == (
        "reordered",
        "the applied mark fell from event 2 (e1.2) to event 1 (e1.1)",
        ["applied", "applied"],
    )
    assert holds(says(order, log(3), shown(1, 2), applied(2), killed(), applied(1, life=2)))
    assert holds(says(order, log(3), shown(1, 2), applied(2), gap(until="e1.0"), applied(1)))
    assert wrong(says(order, log(3), shown(1, 2), applied(2), gap(until="e1.1"), applied(1)))[0] == "reordered"
