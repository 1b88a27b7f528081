"""I3."""

from dataclasses import replace

from chaos_history import again, applied, came, gap, holds, killed, log, says, shown, wrong
from reattach_chaos.checkers import order
from reattach_chaos.history import Delivered, Server


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


def test_a_client_may_still_show_what_came_before_the_log_was_replaced():
    """The new log holds events of the old one: they are of the new one once a gap, or nothing else that came, says so."""
    old = [replace(each, id=f"evt_{each.sequence}") for each in log(3, settles=None)]
    new = [replace(each, id=f"evt_{each.sequence}") for each in log(2, epoch="e2", settles=None)]
    logs = [*old, *new, *log(4, first=3, epoch="e2")]
    before, changed = [came(1, 2, 3), Server(did="epoch", epoch="e2")], came(1, 2, epoch="e2", conn=2)
    three, two = [Delivered(id=f"evt_{number}") for number in (1, 2, 3)], [Delivered(id=f"evt_{n}") for n in (1, 2)]
    told = gap(reason="epoch", after="e1.3", until="e2.0")
    assert holds(says(order, logs, before, three, changed, told, two, shown(3, 4, epoch="e2")))
    assert holds(says(order, logs, before, changed, three, told, two, shown(3, 4, epoch="e2")))
    assert holds(says(order, logs, before, changed, two, gap(until="e2.0"), two, shown(3, 4, epoch="e2")))
    assert wrong(says(order, logs, before, changed, told, two, shown(3, epoch="e2"), three[2:]))[0] == "reordered"
    assert wrong(says(order, logs, before, three[:2], three[2:], told, changed, two[1:], two[:1]))[0] == "reordered"
