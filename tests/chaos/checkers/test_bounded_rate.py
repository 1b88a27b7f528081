"""I14."""

from dataclasses import replace

from chaos_history import asked, at, came, error, holds, killed, log, says, silent, wrong
from reattach_chaos.checkers import bounded_rate
from reattach_chaos.history import Connect, Head, Request

KNOWN = {"floor_ms": 20.0, "base_ms": 100.0, "ceiling_ms": 5000.0}


def row(*times):
    """Attempts at these times."""
    return [at(time, asked(1)) for time in times]


def test_a_few_attempts_are_no_storm():
    """Also without any wait."""
    assert holds(says(bounded_rate, log(3), row(0, 0, 0, 0), storm_connects=4, storm_window_ms=1000.0))
    assert silent(says(bounded_rate, log(3)))


def test_more_attempts_than_the_budget_are_a_storm():
    """Within the window, without a new event; the witness is the first and the last."""
    terms = {"storm_connects": 4, "storm_window_ms": 1000.0}
    assert wrong(says(bounded_rate, log(3), row(0, 200, 400, 600, 900), **terms)) == (
        "storm",
        "5 attempts in 900 ms without a new event, at most 4 in 1000 ms",
        ["resume", "resume"],
    )
    assert holds(says(bounded_rate, log(3), row(0, 400, 800, 1200, 1600), **terms))


def test_refused_connections_are_attempts():
    """There is no request on them."""
    refused = [at(time, Connect(ok=False)) for time in (0, 1, 2, 3, 4)]
    assert wrong(says(bounded_rate, log(3), refused, storm_connects=4))[2] == ["connect", "connect"]
    assert silent(says(bounded_rate, log(3), at(0, Connect())))


def test_only_a_new_event_is_progress():
    """Not one that came before, not half of one, not another client's; an unknown one is new once."""
    terms = {"storm_connects": 4}
    assert holds(says(bounded_rate, log(3), row(0, 0, 0), came(1), row(0, 0, 0), **terms))
    assert holds(says(bounded_rate, log(3), row(0, 0, 0), came(9), row(0, 0, 0), **terms))
    for nothing in (came(1), came(2, whole=False), came(2, who="other")):
        assert wrong(says(bounded_rate, log(3), came(1), row(0, 0, 0), nothing, row(0, 0, 0), **terms))[0] == "storm"


def test_a_new_process_begins_anew():
    """Its predecessor's count died with it."""
    assert holds(says(bounded_rate, log(3), row(0, 0, 0), killed(), row(0, 0, 0), storm_connects=4))


def test_who_was_told_an_error_may_begin_anew():
    """The watch ended with it; another run's error ends no watch of this one."""
    three, told = row(0, 0, 0), at(0, error())
    assert holds(says(bounded_rate, log(3), three, told, three, storm_connects=4))
    elsewhere = [replace(each, run="run_2") for each in told]
    assert wrong(says(bounded_rate, log(3), three, elsewhere, three, storm_connects=4))[0] == "storm"


def test_waits_that_grow_are_right():
    """Full jitter, or none at all for the first."""
    assert holds(says(bounded_rate, log(3), row(0, 0, 60, 180, 400, 900, 1500, 3000, 5500, 9000, 13000), **KNOWN))


def test_waits_that_do_not_grow_are_a_storm():
    """As where each 200 makes them short again; judged from nine attempts, and where the backoff is known."""
    flat = row(*range(0, 1100, 50))
    assert wrong(says(bounded_rate, log(3), flat, **KNOWN))[:2] == (
        "storm",
        "21 attempts without a new event in 1000 ms: the waits do not grow",
    )
    assert holds(says(bounded_rate, log(3), flat[:9], **KNOWN))
    assert wrong(says(bounded_rate, log(3), row(*[0] * 10), **KNOWN))[0] == "storm"
    refused = [at(time, Connect(ok=False)) for time in range(0, 900, 90)]
    assert holds(says(bounded_rate, log(3), refused, **KNOWN)), "those may be of two requests"
    assert wrong(says(bounded_rate, log(3), at(0, *[Connect(ok=False)] * 10), **KNOWN))[0] == "storm"
    slow = row(*range(0, 1920, 160))
    assert wrong(says(bounded_rate, log(3), slow, **KNOWN))[0] == "storm", "also on a machine that takes its time"
    assert holds(says(bounded_rate, log(3), flat))


def test_a_wish_of_the_server_is_kept():
    """Retry-After is a floor, for the requests of that kind about that run."""
    head = at(100, Head(route="stream", status=503, retry_after_ms=500))
    again = Request(route="stream")
    assert silent(says(bounded_rate, log(3), head, at(600, again), at(601, again)))
    assert silent(says(bounded_rate, log(3), head, at(200, Request(route="status"))))
    assert silent(says(bounded_rate, log(3), head, at(200, Request(route="stream", run="another"))))
    assert silent(says(bounded_rate, log(3), at(100, Head(route="stream", status=503)), at(101, again)))
    assert silent(says(bounded_rate, log(3), head, at(101, Request(route="stream", who="other"))))
    assert silent(
        says(bounded_rate, log(3), head, at(400, Request(route="stream", life=2)))
    )  # a new process knows of none
    assert wrong(says(bounded_rate, log(3), head, at(400, again))) == (
        "storm",
        "asked again 300 ms after the server wished for 500 ms",
        ["head", "request"],
    )


def test_a_person_who_was_told_an_error_may_ask_again():
    """For a cancel or a list; a stream and a status are the client's own to repeat."""
    for route, verdict in (("cancel", silent), ("list", silent), ("status", wrong), ("stream", wrong)):
        head, again = Head(route=route, status=503, retry_after_ms=500), at(400, Request(route=route))
        assert verdict(says(bounded_rate, log(3), at(100, head), at(300, error()), again)), route
    head = at(100, Head(route="cancel", status=503, retry_after_ms=500))
    assert wrong(says(bounded_rate, log(3), head, at(400, Request(route="cancel")), at(401, error())))[0] == "storm"
