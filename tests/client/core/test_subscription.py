"""The machine as a whole: laws that hold for every sequence of facts, and dialogues that span several rows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from client.core.scripts import (
    NOW,
    OPENED,
    OUTCOME,
    RECONNECT,
    Dialogue,
    again,
    attaching,
    bare,
    event,
    holding,
    live,
    mark,
    resyncing,
    status,
    waiting,
)
from reattach.core import messages as m
from reattach.core.messages import Mark, Refusal, Why
from reattach.core.moves import LOOPS, RESYNCS
from reattach.core.state import Rules, State
from reattach.core.subscription import TABLE, step
from reattach.model import Status
from reattach.policy import Policy

# laws ------------------------------------------------------------------------------------------------------------------

TIMERS: tuple[m.TimerName, ...] = (
    "connect",
    "idle",
    "behind",
    "reconnect",
    "budget",
    "poll",
    "resync",
    "stall",
    "stream",
)
SECONDS = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 50.0, 1e6]))
REFUSALS = st.builds(Refusal, st.sampled_from(list(Why)), retry_after=SECONDS)
EVENTS = st.builds(
    event,
    st.integers(1, 6),
    epoch=st.sampled_from(["e1", "e1", "e1", "e2"]),
    tag=st.sampled_from("aaab"),
    end=st.booleans(),
    text=st.sampled_from(["", "", "", "x"]),
)
BARE = st.builds(bare, st.sampled_from("xyz"), end=st.booleans())
STATUSES = st.builds(
    lambda word, head, epoch, era, attempt: m.StatusRead(
        era, attempt, epoch, head, word, OUTCOME if word.settled else None
    ),
    st.sampled_from(list(Status)),
    st.one_of(st.none(), st.integers(0, 6)),
    st.sampled_from(["e1", "e1", "e2", None]),
    st.integers(0, 2),
    st.integers(0, 4),
)
FACTS = st.one_of(
    st.builds(m.Opened, st.sampled_from(["e1", "e2", None]), st.just("e1.0"), st.sampled_from([0, 2, None]), st.none()),
    st.lists(EVENTS, max_size=4).map(lambda found: m.Received(tuple(found))),
    st.lists(BARE, max_size=4).map(lambda found: m.Received(tuple(found))),
    st.builds(m.Heard, st.booleans()),
    st.builds(m.Hinted, st.floats(0, 100)),
    st.just(m.Lost()),
    st.just(m.Ended()),
    st.just(m.Declined()),
    st.builds(m.Refused, REFUSALS, SECONDS),
    st.builds(m.Closing, st.sampled_from(["max_age", "draining", "epoch_changed", "cursor_expired", "?"]), SECONDS),
    st.builds(m.Elapsed, st.sampled_from(TIMERS)),
    STATUSES,
    st.builds(m.StatusFailed, st.integers(0, 2), st.integers(0, 4), REFUSALS),
    st.builds(m.SnapshotRead, st.integers(0, 2), st.builds(mark, st.just(0), st.integers(0, 6)), st.none()),
    st.builds(m.SnapshotFailed, st.integers(0, 2), REFUSALS),
    st.builds(m.Woke, st.floats(0, 1e6)),
    st.just(m.Full()),
    st.just(m.Drained()),
)
SETTLE = "the journal answers"
ENDINGS = st.sampled_from([m.Closed(), m.LeaseLost(), m.CommitFailed()])
STEPS = st.lists(st.one_of(FACTS, FACTS, FACTS, FACTS, st.just(SETTLE), st.just(SETTLE), ENDINGS), max_size=40)
RULES = st.builds(
    Rules,
    st.sampled_from([Policy(), Policy(give_up_after=None)]),
    st.sampled_from(["raise", "snapshot", "continue"]),
    st.booleans(),
    st.sampled_from(["stream", "stream", "longpoll", "poll"]),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
)


def answer(asked: m.Effect) -> m.Input:
    match asked:
        case m.Commit(_, batch, upto):
            return m.Committed(upto, outcome=batch[-1].outcome)
        case m.CommitGap(_, _, upto):
            return m.Committed(upto, gap=True)
        case m.CommitOutcome(_, outcome):
            return m.OutcomeCommitted(outcome)
        case _:
            raise AssertionError(asked)


@settings(max_examples=300, deadline=None)
@given(rules=RULES, facts=STEPS)
def test_no_sequence_of_facts_breaks_a_law(rules: Rules, facts: list[m.Input | str]) -> None:
    """Never raises; one connection; one status read; timers are those that were started; only commits deliver; done is final."""
    state = State(rules=rules)
    connected, reading, finished, running = False, False, False, set[str]()
    journal, asked = 0, list[m.Effect]()
    for fact in [m.Attached(Mark()), *facts]:
        if fact == SETTLE:
            if not asked:
                continue
            fact = answer(asked.pop(0))
            if isinstance(fact, m.Committed):
                assert fact.mark.position > journal, "positions grow"
                journal = fact.mark.position
        assert not isinstance(fact, str)
        if isinstance(fact, m.StatusRead | m.StatusFailed):
            reading = False
        if isinstance(fact, m.Lost | m.Ended | m.Refused | m.Declined | m.Opened | m.Received) and not connected:
            continue  # the runtime drops what a closed connection says
        if isinstance(fact, m.Elapsed):
            if fact.timer not in running:
                continue
            running.discard(fact.timer)
        was = state
        state, effects = step(state, fact)
        assert not (finished and effects), "done is final"
        for effect in effects:
            match effect:
                case m.Open():
                    assert not connected, "one connection"
                    connected = True
                case m.Close():
                    connected = False
                case m.StartTimer(timer, low, high):
                    assert 0 <= low <= high < float("inf")
                    running.add(timer)
                case m.StopTimer(timer):
                    assert timer in running
                    running.discard(timer)
                case m.ReadStatus():
                    assert not reading, "one status read"
                    reading = True
                case m.Deliver(position):
                    assert position <= journal, "durable before shown"
                case m.Commit(prev) | m.CommitGap(prev):
                    assert prev.position == (_end(asked) or journal), "a commit names its predecessor"
                    asked.append(effect)
                case m.CommitOutcome():
                    asked.append(effect)
                case m.Finish(outcome, failure):
                    assert (outcome is None) != (failure is None)
                    finished = True
        finished = finished or state.mode == "done"
        assert running == state.timers, (was, fact, effects)
        assert connected or state.mode not in ("attaching", "live")
        if finished:
            assert not connected
            assert not running


def _end(asked: list[m.Effect]) -> int:
    return max((each.mark.position for each in asked if isinstance(each, m.Commit | m.CommitGap)), default=0)


# dialogues -------------------------------------------------------------------------------------------------------------


def test_the_connection_that_delivered_is_replaced_at_once_the_next_is_not() -> None:
    """Polite after the first."""
    talk = holding(TABLE).tell(m.Lost())
    assert talk.window("reconnect") == (0.0, 0.0)
    assert talk.tell(RECONNECT, m.Lost()).window("reconnect") == (0.25, 1.0)


def test_duplicates_alone_are_no_progress() -> None:
    """A server that repeats what we have does not make us hammer it."""
    talk = again(TABLE).tell(m.Opened("e1", "e1.2", 2, "a2"), m.Received((event(1), event(2))), m.Lost())
    assert talk.window("reconnect") == (0.25, 1.0)


def test_admitted_survives_a_loss_with_commits_in_flight() -> None:
    """The server is asked after what is durable; what comes again is dropped."""
    talk = live(TABLE).tell(m.Received((event(1), event(2))), m.Lost(), RECONNECT)
    assert talk.one(m.Open).after is None
    talk.tell(m.Opened("e1", "e1.0", 0, None), m.Received((event(1), event(2), event(3))))
    assert [each.id for each in talk.one(m.Commit).batch] == ["a3"]
    assert talk.one(m.Commit).prev == mark(2)


def test_nothing_is_left_to_reconnect_for_once_the_end_is_here() -> None:
    """Whatever parts us from the server then, the journal's answer is awaited, and nothing else runs."""
    for parting in (m.Lost(), m.Ended(), m.Elapsed("idle"), m.Closing("draining"), m.Closing("epoch_changed")):
        talk = live(TABLE, on_gap="raise").tell(m.Received((event(1), event(2, end=True))), parting)
        assert (talk.kinds, talk.mode, talk.state.timers) == (["Close"], "ending", frozenset())
        assert talk.tell(m.StatusRead(0, 1, "e2", 9, Status.RUNNING)).effects == ()
        assert talk.tell(m.Committed(mark(2), outcome=OUTCOME)).ending == OUTCOME


def test_nothing_follows_a_settling_event() -> None:
    """A server that sends more is not believed."""
    talk = live(TABLE).tell(m.Received((event(1, end=True), event(2))))
    assert [each.id for each in talk.one(m.Commit).batch] == ["a1"]
    assert talk.tell(m.Received((event(2),))).kinds == []


def test_an_end_on_its_way_to_the_disk_outlives_a_forgotten_run() -> None:
    """404, no token, no time left: the journal's answer alone decides."""
    no = Refusal(Why.NOT_FOUND)
    ways: list[tuple[m.Input, ...]] = [
        (m.Refused(no),),
        (m.StatusFailed(NOW, 2, no),),
        (m.Refused(Refusal(Why.BUSY, retry_after=900.0), left=5.0),),
        (m.StatusFailed(NOW, 2, Refusal(Why.FORBIDDEN)),),
        (m.Elapsed("budget"),),
    ]
    for facts in ways:
        talk = live(TABLE).tell(m.Received((event(1, end=True),)), m.Full(), m.Drained(), *facts)
        assert (talk.kinds, talk.mode) == (["Close"], "ending"), facts
        assert talk.tell(m.Committed(mark(1), outcome=OUTCOME)).ending == OUTCOME
        talk = live(TABLE).tell(m.Received((event(1, end=True),)), m.Full(), m.Drained(), *facts, m.CommitFailed())
        assert talk.failure == "commit_failed"


def test_what_a_read_brought_before_a_conflict_is_kept() -> None:
    """The conflict ends it; commits in flight settle undelivered."""
    talk = live(TABLE).tell(m.Received((event(1), event(1, text="other"), event(2))))
    assert (talk.kinds, talk.failure) == (["Commit", "Close", "Finish"], "event_conflict")
    assert talk.tell(m.Committed(mark(1))).effects == ()


def test_what_a_read_brought_before_a_hole_is_kept() -> None:
    """The hole in the middle of a batch is a loss the first time, at the cursor asked after."""
    talk = live(TABLE).tell(m.Received((event(1), event(3))))
    assert (talk.kinds, talk.mode) == (["Commit", "Close"], "waiting")
    talk.tell(m.Committed(mark(1)), RECONNECT)
    assert talk.one(m.Open).after == "e1.1"
    first = talk.tell(m.Opened("e1", "e1.1", 1, "a1"), m.Received((event(3),)))
    assert first.mode == "waiting"
    talk.tell(RECONNECT, m.Opened("e1", "e1.1", 1, "a1"), m.Received((event(3),)))
    assert (talk.mode, talk.state.cause) == ("resyncing", "hole")


def test_a_server_that_begins_lower_sends_duplicates_not_a_hole() -> None:
    """An older server's inclusive cursor."""
    talk = again(TABLE).tell(m.Opened("e1", "e1.1", 1, "a1"), m.Received((event(2), event(3))))
    assert [each.id for each in talk.one(m.Commit).batch] == ["a3"]


def test_a_boundary_is_adopted_after_what_is_in_flight() -> None:
    """Nothing is asked for while a commit is out, and its gap names it as predecessor."""
    talk = live(TABLE).tell(m.Received((event(1), event(2))), m.Received((event(3, epoch="e2", tag="r"),)))
    assert (talk.kinds, talk.state.timers >= {"resync"}) == (["Close"], False)
    talk.tell(m.Committed(mark(2)), m.SnapshotRead(NOW, mark(0, 1, epoch="e2", tag="r")))
    gap = talk.one(m.CommitGap)
    assert (gap.prev, gap.mark.position, gap.missing, gap.reason) == (mark(2), 3, None, "epoch")


def test_answers_from_before_the_boundary_are_dropped() -> None:
    """An old status, an old snapshot and an old refusal change nothing."""
    boundary = mark(0, 5)
    talk = resyncing(TABLE)
    era = talk.state.era
    talk.tell(m.SnapshotRead(era, boundary))
    old: list[m.Input] = [m.SnapshotRead(era, boundary), m.SnapshotFailed(era, Refusal(Why.NOT_FOUND))]
    for fact in old:
        assert talk.tell(fact).effects == ()
    talk.tell(m.Committed(mark(3, 5), gap=True))
    stale = m.StatusRead(era, 2, "e9", 9, Status.COMPLETED, OUTCOME)
    assert "Close" not in talk.tell(stale).kinds
    assert talk.mode == "attaching"


def test_raising_waits_for_what_is_in_flight_too() -> None:
    """The application gets what is durable, then the error with its cause."""
    talk = live(TABLE, on_gap="raise").tell(m.Received((event(1),)), m.Closing("cursor_expired"))
    assert (talk.kinds, talk.mode) == (["Close"], "resyncing")
    talk.tell(m.Committed(mark(1)))
    assert (talk.kinds, talk.failure) == (["Deliver", "Finish"], "cursor_expired")


def test_an_end_in_flight_needs_no_boundary() -> None:
    """The settling event was admitted before the log was replaced."""
    talk = live(TABLE, on_gap="raise").tell(
        m.Received((event(1, end=True),)), status(epoch="e2"), m.Closing("epoch_changed")
    )
    talk.tell(m.Committed(mark(1), outcome=OUTCOME))
    assert talk.ending == OUTCOME


def test_a_hole_cannot_be_passed_by_going_back_before_it() -> None:
    """With on_gap="continue" the oldest event kept lies before the hole: there is nothing to go on from."""
    hole = m.Received((event(4),))
    talk = again(TABLE, on_gap="continue").tell(hole, RECONNECT, hole)
    assert (talk.mode, talk.one(m.Open).after) == ("resyncing", m.EARLIEST)
    assert talk.tell(m.Opened("e1", "e1.0", 0, None)).failure == "gap_unfillable"


def test_events_that_a_replica_still_has_are_no_gap() -> None:
    """Expired on one, kept on another: the same cursor is asked again."""
    talk = resyncing(TABLE, on_gap="continue").tell(m.Opened("e1", "e1.1", 1, "a1"))
    assert (talk.kinds, talk.mode, talk.one(m.Open).after) == (["Close", "Open"], "attaching", "e1.2")


def test_a_lagging_snapshot_is_not_a_boundary() -> None:
    """It lies below what we have; another is asked for."""
    talk = resyncing(TABLE).tell(m.SnapshotRead(NOW, mark(0, 1)))
    assert (talk.kinds, talk.mode) == ([], "resyncing")
    assert talk.tell(m.Elapsed("resync")).kinds == ["ReadSnapshot"]


def test_three_boundaries_without_an_event_are_enough() -> None:
    """The gap cannot be filled; saying so beats trying for ever."""
    talk = holding(TABLE).tell(m.Lost(), RECONNECT)
    for number in range(RESYNCS):
        talk.tell(m.Refused(Refusal(Why.EXPIRED)), m.SnapshotRead(NOW, mark(0, 5 + number)))
        talk.tell(m.Committed(talk.one(m.CommitGap).mark, gap=True))
    assert talk.tell(m.Refused(Refusal(Why.EXPIRED))).failure == "gap_unfillable"


def test_a_fast_loop_is_slowed_to_the_poll_and_said_once() -> None:
    """Ten attaches at one cursor that brought nothing."""
    talk, notices = live(TABLE), 0
    for _ in range(LOOPS + 3):
        talk.tell(m.Lost())
        notices += sum(isinstance(each, m.Notice) for each in talk.effects)
        window = talk.window("reconnect")
        talk.tell(RECONNECT, m.Opened("e1", "e1.0", 0, None))
    assert (notices, window) == (1, (30.0, 37.5))
    talk.tell(m.Elapsed("poll"), m.Lost())
    assert talk.window("reconnect") != (30.0, 37.5), "a connection that lived through a poll is no fast loop"


def test_a_large_event_on_its_way_is_not_held_back() -> None:
    """While it grows the watch begins again; a heartbeat alone does not stop it."""
    talk = live(TABLE).tell(status(head=1), m.Heard(growing=True))
    assert talk.window("behind") == (5.0, 5.0)
    talk.tell(m.Heard())
    assert not any(isinstance(each, m.StartTimer) and each.timer == "behind" for each in talk.effects)
    assert "behind" in talk.state.timers
    assert "behind" not in talk.tell(m.Received((event(1),))).state.timers


def test_bytes_before_the_stream_has_begun_do_not_stretch_the_connect_limit() -> None:
    """A 200 that says nothing is not an attach."""
    assert attaching(TABLE).tell(m.Heard()).effects == ()


def test_a_watch_that_runs_is_not_begun_again_by_the_next_answer() -> None:
    """Else a frequent poll would put it off for ever."""
    talk = live(TABLE).tell(status(head=1), m.Elapsed("poll"), status(head=2))
    assert not any(isinstance(each, m.StartTimer) and each.timer == "behind" for each in talk.effects)


def test_an_outcome_by_status_waits_for_commits_in_flight() -> None:
    """What the journal is writing comes first; the next answer finds it written."""
    talk = holding(TABLE, 1).tell(m.Received((event(2),)), m.Elapsed("poll"), status(True, 1))
    assert talk.mode == "live"
    talk.tell(m.Committed(mark(2)), m.Elapsed("poll"), status(True, 2))
    assert talk.mode == "ending"


def test_settled_without_positions_needs_an_attach_opened_after_the_answer() -> None:
    """A body that was open when the answer came may have missed the last events."""
    talk = attaching(TABLE, contiguous=False).tell(
        m.Opened(), m.Received((bare("x"),)), m.Committed(Mark(1, cursor="x"))
    )
    talk.tell(m.Lost(), RECONNECT, m.Opened(), status(True, None, epoch=None, attempt=1), m.Ended())
    assert talk.mode == "waiting"
    assert talk.tell(RECONNECT, m.Opened(), m.Ended()).mode == "ending"


def test_a_settled_204_brings_no_notice() -> None:
    """It is as it should be."""
    talk = again(TABLE).tell(m.Declined(), status(True, 9))
    assert not any(isinstance(each, m.Notice) for each in talk.effects)


def test_a_definite_answer_that_only_a_token_was_old_is_forgotten() -> None:
    """401, then a good answer, then 401: each is the first."""
    no = m.Refused(Refusal(Why.UNAUTHENTICATED))
    talk = attaching(TABLE).tell(no, RECONNECT, OPENED, m.Lost(), RECONNECT, no)
    assert talk.mode == "waiting"
    by_status = m.StatusFailed(NOW, 1, Refusal(Why.UNAUTHENTICATED))
    talk = attaching(TABLE).tell(by_status, status(head=0), m.Lost(), RECONNECT, by_status._replace(attempt=2))
    assert talk.mode == "attaching"


def test_a_healthy_status_grants_nothing_that_the_stream_refused() -> None:
    """A stream that refuses every token beside a status that takes them all ends; once it went on for ever. So does a 404."""
    for why, code in ((Why.UNAUTHENTICATED, "not_authorized"), (Why.NOT_FOUND, "not_found")):
        no = m.Refused(Refusal(why))
        talk = attaching(TABLE, before=True).tell(no, status(head=0), RECONNECT, status(head=0), no)
        assert talk.failure == code


def test_the_budget_begins_again_with_an_attach() -> None:
    """It stands while we are attached or parked, and without a limit never runs."""
    assert "budget" not in live(TABLE).state.timers
    assert waiting(TABLE).window("budget") == (600.0, 600.0)
    assert "budget" not in waiting(TABLE, give_up_after=None).state.timers


def test_attempts_are_counted_in_the_failure() -> None:
    """What was tried."""
    talk = attaching(TABLE).tell(m.Lost(), RECONNECT, m.Lost(), RECONNECT, m.Refused(Refusal(Why.OTHER, "no", 418)))
    failure = talk.one(m.Finish).failure
    assert (failure.attempts, failure.detail, failure.refusal.status) == (3, "no", 418)


def test_a_detached_machine_ignores_the_world() -> None:
    """Nothing was asked for yet."""
    for fact in (m.Lost(), m.Received((event(1),)), m.Opened(), m.Drained()):
        assert Dialogue().tell(fact).effects == ()


def test_a_status_of_the_log_before_the_first_event_is_old() -> None:
    """The log was replaced before we saw anything: the history that we have is whole, and no epoch has changed for us."""
    old = m.StatusRead(0, 1, "e1", 1, Status.RUNNING)
    talk = attaching(TABLE, on_gap="raise").tell(
        m.Opened("e2", "e2.0", 0, None), m.Received((event(1, epoch="e2"),)), old
    )
    assert talk.mode == "live"
