"""I13 and I27."""

from chaos_history import (
    asked,
    at,
    cut,
    error,
    exited,
    finished,
    holds,
    killed,
    log,
    refused,
    says,
    shown,
    silent,
    streams,
    wrong,
)
from reattach_chaos.checkers import Unknown, convergence, exits, no_give_up
from reattach_chaos.history import Backoff, Connect

T = {"converge_ms": 1000.0}
BROKEN = [log(3), at(10, shown(1), cut())]


def test_a_client_that_ends_in_time_converges():
    """Or says an error, or leaves: what that means is told elsewhere."""
    for end in (finished(), error(), exited(1), killed()):
        history = [BROKEN, at(900, end)]
        assert holds(says(convergence, *history, **T))
        assert holds(says(exits, *history, **T))


def test_a_client_that_is_live_and_has_caught_up_converges():
    """The run has not settled, and all of it was shown."""
    assert holds(says(convergence, log(2, settles=None), shown(1, 2), at(5000, exited(None)), **T))


def test_a_client_that_tries_on_and_never_arrives_hangs():
    """It is at it when its time is over; the witness is the fault and its last tries."""
    ruling = says(convergence, BROKEN, at(1500, asked(1)), at(1900, asked(1)), at(2000, exited(None)), **T)
    assert wrong(ruling) == (
        "hang",
        "the client did not catch up within 1000 ms of the last fault",
        ["cut.fired", "resume", "resume"],
    )
    assert holds(says(exits, BROKEN, at(1500, asked(1)), at(1900, asked(1)), at(2000, exited(None)), **T))


def test_who_asks_for_ever_for_what_is_gone_is_told_of_that():
    """I15's: one bug, one sentence. Who has met a refusal as often as the case allows, or has been let in again since, hangs."""

    def tried(*answers, every):
        tries = [at(every * number, asked(1), answer) for number, answer in enumerate(answers, 1)]
        return [BROKEN, tries, at(2000, exited(None))]

    for law, every in ((convergence, 400), (exits, 100)):
        assert holds(says(law, *tried(*[refused()] * 4, every=every), **T))
        assert wrong(says(no_give_up, *tried(*[refused()] * 4, every=every), **T))[0] == "storm"
        for passing in ([refused()] * 3, [*[refused()] * 4, streams()], [refused(503, "overloaded")] * 4):
            assert wrong(says(law, *tried(*passing, every=every), **T))[0] == "hang"


def test_a_client_that_does_nothing_any_more_is_stuck():
    """No connection, no request, nothing shown: it has no way out of its state."""
    history = [BROKEN, at(20, asked(1)), at(30, Backoff(delay_ms=1)), at(2000, exited(None))]
    assert wrong(says(exits, *history, **T)) == (
        "hang",
        "the client did nothing for 1980 ms, and the run was not shown to its end",
        ["cut.fired", "resume"],
    )
    assert holds(says(convergence, *history, **T))
    assert wrong(says(exits, log(3), at(2000, exited(None)), **T))[2] == []
    assert wrong(says(exits, BROKEN, at(2000, exited(None)), **T))[2] == ["cut.fired"]


def test_what_others_do_is_no_try_of_the_clients():
    """Another subscriber goes on, and the client stands still."""
    history = [BROKEN, at(20, asked(1)), at(1900, asked(1, who="other")), at(2000, exited(None))]
    assert wrong(says(exits, *history, **T))[0] == "hang"


def test_a_client_that_never_noticed_a_stall_is_the_stall_bounds():
    """One bug, one sentence; one that tried on afterwards and then stopped is stuck all the same."""
    stalled = [log(3), at(10, shown(1), cut("stall"))]
    assert holds(says(exits, stalled, at(9000, exited(None)), **T))
    assert wrong(says(exits, stalled, at(20, asked(1)), at(9000, exited(None)), **T))[0] == "hang"


def test_a_client_that_has_shown_all_and_told_no_end_is_stuck():
    """A spinner for ever."""
    assert wrong(says(exits, log(2), shown(1, 2), at(2000, exited(None)), **T))[0] == "hang"


def test_a_history_that_ends_too_early_proves_nothing():
    """The client was at it, and had time left."""
    ruling = says(convergence, BROKEN, at(500, Connect(), exited(None)), **T)
    assert ruling == Unknown("the history ends 490 ms after the last fault, and the client had not come to its end")


def test_an_end_that_comes_late_is_a_hang():
    """Counted from the last fault, or from the last event where that was later."""
    assert wrong(says(convergence, BROKEN, shown(2, 3), at(2000, finished()), **T)) == (
        "hang",
        "the end was told 1990 ms after the last fault and the last event",
        ["cut.fired", "finished"],
    )
    late = [at(1500, log(3)), at(10, cut()), at(2000, shown(1, 2, 3), finished())]
    assert holds(says(convergence, *late, **T))
    assert wrong(says(convergence, log(3), at(2000, finished()), **T))[2] == ["finished"]


def test_without_a_log_nothing_is_said():
    """Nothing was played."""
    assert silent(says(convergence, at(5, asked(1))))
    assert silent(says(exits, at(5, asked(1))))
