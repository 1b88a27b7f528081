"""Public reports as histories: what was reported is found, by one law, and the right behaviour is not blamed."""

from chaos_history import (
    asked,
    at,
    beat,
    came,
    closed,
    cut,
    error,
    exited,
    finished,
    gap,
    log,
    made,
    shown,
    streams,
)
from reattach_chaos.checkers import judge
from reattach_chaos.history import Created, Request, Server, Status

T = {"converge_ms": 10_000.0, "heartbeat_ms": 1000.0, "floor_ms": 20.0, "base_ms": 100.0, "ceiling_ms": 5000.0}


def blamed(*parts):
    """Return the law and the anomaly; at most one law may speak."""
    broken = judge(made(*parts, **T)).broken
    assert len(broken) <= 1, broken
    return [(law, ruling.anomaly) for law, ruling in broken.items()]


def healthy(last=4, conn=1):
    """A run that is followed from its beginning."""
    return [asked(None, conn), streams(conn), came(*range(1, last + 1), conn=conn), shown(*range(1, last + 1))]


def test_b14_a_connection_that_is_dead_and_open():
    """B14: the read blocks for ever, and the screen says connected; right is a reconnect within k heartbeats."""
    dead = [log(4), healthy(2), at(100, beat(100)), at(200, cut("half-open"))]
    assert blamed(dead, at(60_000, exited(None))) == [("I17", "hang")]
    rest = at(3300, closed("client"), asked(2, 2), streams(2), came(3, 4, conn=2), shown(3, 4), finished(), exited())
    assert blamed(dead, rest) == []


def test_b18_a_proxy_that_cuts_idle_streams():
    """B18: the run is called failed while it runs; right is to go on."""
    idle = [log(4), healthy(2), at(2000, cut("fin"))]
    assert blamed(idle, at(2001, error("stream_closed")), exited(1)) == [("I15", "gave up")]
    assert blamed(idle, asked(2, 2), streams(2), came(3, 4, conn=2), shown(3, 4), finished(), exited()) == []


def test_b30_connections_that_close_at_once():
    """B30: a success resets the wait, and the requests are a storm; right is that the waits grow."""
    storm = [at(20.0 * n, asked(None, n), streams(n), cut("empty", 20.0 * n, n)) for n in range(1, 60)]
    assert blamed(log(1), storm, exited(None))[0] == ("I14", "storm")
    waits = [at(50.0 * 2**n, asked(None, n), streams(n), cut("empty", 0.0, n)) for n in range(1, 9)]
    rest = at(13_000, asked(None, 9), streams(9), came(1, conn=9), shown(1), finished(), exited())
    assert blamed(log(1), waits, rest) == []


def test_b44_a_create_whose_answer_was_lost():
    """B44: the retry makes a second run; right is the same key and the same run."""
    first = Request(route="create", key="k1", sha256="b")
    rest = [healthy(), finished(), exited()]
    two = [Created(run="r1", key="k1"), Created(run="r2", key="k2")]
    assert blamed(log(4), first, Request(route="create", key="k2", sha256="b"), rest, two) == [("I8", "second run")]
    assert blamed(log(4), first, first, rest, two[0]) == []


def test_b49_a_resume_that_drops_before_its_first_event():
    """B49: the next resume is from nowhere, and all is shown again; right is that every request says the same."""
    dropped = [log(4), healthy(2), cut("rst"), *[(asked(2, n), streams(n), closed("gate", n)) for n in (2, 3, 4)]]
    nowhere = [asked(None, 5), streams(5), came(1, 2, 3, 4, conn=5), shown(1, 2, 3, 4), finished(), exited()]
    assert blamed(dropped, nowhere) == [("I2", "duplicated")]
    assert blamed(dropped, asked(2, 5), streams(5), came(3, 4, conn=5), shown(3, 4), finished(), exited()) == []


def test_b62_a_server_that_begins_anew_below_the_cursor():
    """B62: the client holds a high number and sees nothing for hours; right is to tell that the log was replaced."""
    fresh = [log(4, settles=None), log(2, epoch="e2"), healthy(4), at(100, Server(did="epoch", epoch="e2"))]
    quiet = [at(200, asked(4, 2), streams(2, "e2"))]
    assert blamed(fresh, quiet, at(60_000, exited(None))) == [("I27", "hang")]
    told = [
        gap(reason="epoch"),
        asked(None, 3),
        streams(3, "e2"),
        came(1, 2, conn=3, epoch="e2"),
        shown(1, 2, epoch="e2"),
    ]
    assert blamed(fresh, at(300, told, finished(), exited())) == []


def test_b63_a_new_log_that_is_already_past_the_cursor():
    """B63: the numbers fit, and the first ten events are skipped; right is the epoch."""
    logs = [log(2, settles=None), log(4, epoch="e2"), healthy(2), Server(did="epoch", epoch="e2")]
    skipped = [
        asked(2, 2),
        streams(2, "e2"),
        came(3, 4, conn=2, epoch="e2"),
        shown(3, 4, epoch="e2"),
        finished(),
        exited(),
    ]
    assert ("I18", "silent gap") in [(law, r.anomaly) for law, r in judge(made(logs, skipped, **T)).broken.items()]


def test_b82_a_run_whose_end_never_comes():
    """B82: the spinner turns for ever; right is that a status read ends it within a period."""
    silent = [log(2), healthy(2), [at(1000.0 * n, beat(1000.0 * n)) for n in range(1, 20)]]
    assert blamed(silent, at(30_000, exited(None))) == [("I27", "hang")]
    ended = at(5000, Status(status="completed", head=2), finished(evidence="status"), exited())
    assert blamed(log(2), healthy(2), ended) == []


def test_a_loop_that_never_reconnects():
    """The plain httpx-sse loop: it ends with its stream, without a word; what it has not shown is lost."""
    assert blamed(log(4), healthy(2), cut("fin"), exited(0)) == [("I1", "lost")]
