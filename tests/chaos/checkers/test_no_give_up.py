"""I15."""

import pytest

from chaos_history import (
    asked,
    at,
    came,
    cut,
    error,
    exited,
    finished,
    holds,
    log,
    refused,
    says,
    shown,
    silent,
    streams,
    wrong,
)
from reattach_chaos.checkers import no_give_up
from reattach_chaos.history import Head, Server, Store, Surfaced

LOST = [log(3), at(100, streams(), came(1), shown(1)), at(200, cut())]


def test_what_passes_is_no_reason_to_end():
    """Where the case gives no budget, never; with one, not before it."""
    assert wrong(says(no_give_up, LOST, at(300, error()), exited(1))) == (
        "gave up",
        "the client gave up (reconnect_exhausted) 200 ms after a good sign; never",
        ["cut.fired", "surfaced"],
    )
    assert wrong(says(no_give_up, LOST, at(300, error("")), give_up_ms=600.0))[1] == (
        "the client gave up (error) 200 ms after a good sign; not before 600 ms"
    )
    assert wrong(says(no_give_up, log(3), at(300, error())))[2] == ["surfaced"]


def test_the_error_of_a_create_that_was_tried_again_ends_no_watch():
    """It came before the first attach; what ends the watch is what comes behind that."""
    watch = [
        log(3),
        at(10, error("remote_protocol_error")),
        at(20, asked(None)),
        at(30, refused()),
        at(40, error("cursor_expired")),
    ]
    assert holds(says(no_give_up, watch, exited(1)))
    assert (
        wrong(says(no_give_up, log(3), at(10, error("first")), at(20, asked(None)), at(30, error("second"))))[0]
        == "gave up"
    )


def test_after_its_budget_a_client_may_end():
    """Counted from the last good sign."""
    assert holds(says(no_give_up, LOST, at(800, error()), give_up_ms=600.0))


def test_a_wish_beyond_the_budget_is_its_end():
    """Of the stream's last answer, counted from the last good sign; without a budget no wish is too long."""
    busy = at(210, Head(route="stream", status=503, retry_after_ms=500.0))
    assert holds(says(no_give_up, LOST, busy, at(211, error()), give_up_ms=600.0))
    assert wrong(says(no_give_up, LOST, busy, at(211, error()), give_up_ms=700.0))[0] == "gave up"
    assert wrong(says(no_give_up, LOST, busy, at(211, error())))[0] == "gave up"
    again = at(212, Head(route="stream", status=503))
    assert wrong(says(no_give_up, LOST, busy, again, at(213, error()), give_up_ms=600.0))[0] == "gave up"
    status = at(210, Head(route="status", status=503, retry_after_ms=500.0))
    assert wrong(says(no_give_up, LOST, status, at(211, error()), give_up_ms=600.0))[0] == "gave up"


@pytest.mark.parametrize(
    "reason",
    [refused(404, "run_not_found"), Head(route="status", status=401), Store(did="failed"), Server(did="expired")],
    ids=lambda reason: reason.kind,
)
def test_what_is_permanent_is_a_reason(reason):
    """A refusal, a failed store, a log that was cut short."""
    assert holds(says(no_give_up, LOST, reason, at(300, error())))


@pytest.mark.parametrize(
    "nothing",
    [
        refused(503, "overloaded"),
        Head(route="status", status=500),
        Head(route="status", status=404, who="other"),
        Store(did="lagged"),
        Server(did="killed"),
    ],
    ids=str,
)
def test_what_passes_stays_what_passes(nothing):
    """Overload, a slow store, a server that comes again, another client's trouble."""
    assert wrong(says(no_give_up, LOST, nothing, at(300, error())))[0] == "gave up"


def test_what_is_another_protocol_three_times_in_a_row_is_for_a_person():
    """A login page: twice may pass, and an attach in between begins anew."""
    page = Head(route="stream", status=200, media="text/html")
    events = Head(route="stream", status=200, media="text/event-stream")
    put = [LOST, cut("wrong-type")]
    assert holds(says(no_give_up, put, page, page, page, at(300, error())))
    assert wrong(says(no_give_up, put, page, page, at(300, error())))[0] == "gave up"
    assert wrong(says(no_give_up, put, page, page, events, streams(), page, at(300, error())))[0] == "gave up"
    assert wrong(says(no_give_up, put, page, page, at(300, error()), page))[0] == "gave up"
    status = Head(route="status", status=200, media="text/html")
    assert wrong(says(no_give_up, put, page, page, status, at(300, error())))[0] == "gave up"


def test_a_server_that_sends_pages_of_itself_has_ended_the_watch():
    """No fault of ours put them there."""
    page = Head(route="stream", status=200, media="text/html")
    assert wrong(says(no_give_up, LOST, page, page, page, at(300, error())))[0] == "gave up"
    assert wrong(says(no_give_up, LOST, page, page, page, at(300, error()), cut("wrong-type")))[0] == "gave up"


def test_an_end_a_gap_or_a_silent_exit_is_not_giving_up():
    """The first is right, the others are other laws'."""
    assert holds(says(no_give_up, LOST, finished(), error()))
    assert holds(says(no_give_up, LOST, Surfaced(what="gap"), exited(1)))
    assert silent(says(no_give_up, log(3), exited(0)))


def test_what_is_permanent_is_not_asked_for_for_ever():
    """More often than the case allows, without a stream in between."""
    answers = [refused() for _ in range(4)]
    assert wrong(says(no_give_up, log(3), answers)) == (
        "storm",
        "410 cursor_expired was answered 4 times in a row, and asked for again",
        ["resume.rejected", "resume.rejected"],
    )
    assert holds(says(no_give_up, log(3), answers[:3]))
    assert holds(says(no_give_up, log(3), answers[:2], streams(), answers[2:]))
    assert holds(says(no_give_up, log(3), answers[:2], refused(503, "busy"), answers[2:]))
