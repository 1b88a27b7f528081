"""I17."""

from chaos_history import asked, at, beat, came, closed, cut, exited, finished, holds, log, says, silent, streams, wrong
from reattach_chaos.checkers import stall_bound
from reattach_chaos.history import ResumeEnd, Store, Terminal

T = {"heartbeat_ms": 1000.0, "stall_heartbeats": 4.0}


def test_a_silent_connection_is_given_up_in_time():
    """By its close, or by another attach; told by the gate or by the client."""
    for answer in (closed("client"), asked(1, conn=2), finished(), closed("client", who="gate")):
        assert holds(says(stall_bound, log(2), cut("stall"), at(3900, answer), at(9000, exited(0)), **T))


def test_the_bounds_are_part_of_what_is_allowed():
    """Exactly k heartbeats are in time; exactly half of one is haste."""
    assert holds(says(stall_bound, log(2), cut("stall"), at(4000, closed("client")), **T))
    hasty_twice = [hasty(1, 0, 500.0), hasty(2, 2000, 500.0)]
    assert wrong(says(stall_bound, log(2), hasty_twice, at(3000, asked(1, conn=3)), **T))[0] == "storm"


def test_a_silent_connection_that_is_held_is_a_hang():
    """Until the client moves, or until the history ends."""
    assert wrong(says(stall_bound, log(2), cut("stall"), at(4100, closed("client")), **T)) == (
        "hang",
        "a silent connection was held for 4100 ms; at most 4000 ms",
        ["cut.fired", "close"],
    )
    assert wrong(says(stall_bound, log(2), cut("half-open"), at(4100, beat(4100, conn=2)), **T))[2] == ["cut.fired"]


def test_a_sleep_of_the_machine_is_nobodys_silence():
    """Whichever side of its record it is on; what remains is judged."""
    for slept in (at(3_600_000, cut("suspend")), at(100, cut("suspend"))):
        assert holds(says(stall_bound, log(2), cut("stall"), slept, at(3_602_000, closed("client")), **T))
    late = [at(100, cut("suspend")), at(3_600_000, asked(1, who="other")), at(3_605_000, closed("client"))]
    assert wrong(says(stall_bound, log(2), cut("stall"), *late, **T))[0] == "hang"


def test_what_does_not_answer_the_stall_is_no_reaction():
    """Another connection's close, the gate's own close, another client's attach."""
    for nothing in (closed("client", conn=2), closed("gate", who="gate"), asked(1, who="other")):
        assert wrong(says(stall_bound, log(2), cut("stall"), at(10, nothing), at(5000, finished()), **T))[0] == "hang"


def test_other_faults_are_no_stalls():
    """A reset is noticed at once."""
    assert silent(says(stall_bound, log(2), cut("rst"), at(9000, finished()), **T))


def hasty(conn, begin, silence=750.0, **facts):
    """A live connection that the client closes after some silence."""
    return [at(begin, streams(conn)), at(begin + silence, closed("client", conn, **facts))]


def test_a_live_connection_is_not_given_up_before_a_heartbeat_is_due():
    """Twice, without a reason, and gone on with afterwards."""
    ruling = says(stall_bound, log(2), hasty(1, 0), hasty(2, 2000), at(3000, asked(1, conn=3)), **T)
    assert wrong(ruling) == (
        "storm",
        "a live connection was closed after 750 ms of silence; the heartbeat is 1000 ms",
        ["resume.ok", "close"],
    )


def test_one_close_may_have_a_reason_that_nobody_wrote_down():
    """And one that the client does not come back from is a farewell."""
    assert silent(says(stall_bound, log(2), hasty(1, 0), at(3000, asked(1, conn=3)), **T))
    assert silent(says(stall_bound, log(2), hasty(1, 0), hasty(2, 2000), **T))


def test_patience_is_right_and_so_is_haste_for_another_reason():
    """A whole heartbeat; or at once, because of what was read; or because the store failed; or another's connection."""
    again = at(9000, asked(1, conn=9))
    beats = at(0, beat(0, conn=1))
    assert holds(says(stall_bound, log(2), beats, hasty(1, 0, 1000.0), hasty(2, 2000, 3000.0), again, **T))
    assert silent(says(stall_bound, log(2), hasty(1, 0, 100.0), hasty(2, 2000, 100.0), again, **T))
    failed = [at(0, streams(1)), Store(did="failed"), at(750, closed("client", 1))]
    assert silent(says(stall_bound, log(2), failed, failed, again, **T))
    ended = [at(0, streams(1)), Terminal(witness="stream", status="completed"), at(750, closed("client", 1))]
    assert silent(says(stall_bound, log(2), ended, ended, again, **T)), "it took its time over a stream that had ended"
    never_live = [at(0, closed("client", 5)), at(0, closed("gate", 6)), at(0, closed("client", None))]
    assert silent(says(stall_bound, log(2), never_live, again, **T))


def test_a_stream_that_has_ended_is_not_live():
    """Its connection may go on, and who leaves it later leaves nothing."""
    left = [[at(n, streams(n)), at(n + 10, ResumeEnd(conn=n)), at(n + 750, closed("client", n))] for n in (1, 2)]
    assert silent(says(stall_bound, log(2), left, at(3000, asked(1, conn=3)), **T))


def test_each_byte_counts():
    """The silence begins with the last one."""
    busy = [at(0, streams(1)), at(400, came(1)), at(700, came(2)), at(800, closed("client", 1))]
    assert silent(says(stall_bound, log(2), busy, hasty(2, 2000), at(3000, asked(1, conn=3)), **T))
