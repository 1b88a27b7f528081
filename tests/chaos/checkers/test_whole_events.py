"""I6."""

from chaos_history import asked, came, exited, finished, holds, log, says, shown, silent, wrong
from reattach_chaos.checkers import whole_events
from reattach_chaos.history import Snapshot


def test_half_an_event_that_comes_again_whole_is_right():
    """Asked after the one before."""
    cut_short = [asked(None), came(1), shown(1), came(2, whole=False)]
    assert holds(says(whole_events, log(2), cut_short, asked(1, conn=2), came(2, conn=2), shown(2)))
    assert silent(says(whole_events, log(2), shown(1, 2), asked(2)))


def test_a_cursor_from_half_an_event_loses_the_event():
    """The witness is the half that came and the attach behind it."""
    cut_short = [came(1), shown(1), came(2, whole=False)]
    ruling = says(whole_events, log(3), cut_short, asked(2, conn=2), came(3, conn=2), shown(3), finished(), exited())
    assert wrong(ruling) == (
        "lost",
        "event 2 (e1.2) was never shown: e1.2 was asked after, and of the event only a part had come",
        ["received", "resume"],
    )
    assert ruling.count == 1


def test_the_attach_alone_is_proof():
    """Also where the case ended before the loss was certain."""
    assert wrong(says(whole_events, log(3), came(1), shown(1), came(2, whole=False), asked(2, conn=2)))[1] == (
        "the client asked after event 2 (e1.2), and only a part of it had come"
    )


def test_a_cursor_that_the_server_stated_is_from_no_half_event():
    """A state at a boundary holds the event of which only a part had come on the stream."""
    stated = Snapshot(boundary="e1.2", status="running")
    assert holds(says(whole_events, log(3), came(1), shown(1), came(2, whole=False), stated, asked(2, conn=2)))
    assert wrong(says(whole_events, log(3), came(1), shown(1), came(2, whole=False), asked(2, conn=2), stated))


def test_half_an_event_must_not_be_shown():
    """Its text would be cut short."""
    assert wrong(says(whole_events, log(2), came(1, whole=False), shown(1))) == (
        "changed",
        "event 1 (e1.1) was shown, and only a part of it had come",
        ["received", "delivered"],
    )
