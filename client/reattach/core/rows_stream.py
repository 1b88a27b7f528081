"""Rows of a subscription that attaches, reads and loses its connection.

What an answer, an event, a loss or a refusal means. A clean end of the body is a loss; only the settling event is an end.
"""

from __future__ import annotations

from operator import attrgetter

from reattach.core.admission import Verdict, admit, leading
from reattach.core.backoff import Window
from reattach.core.liveness import observed
from reattach.core.messages import (
    UNSTATED,
    Arrival,
    Attached,
    Close,
    Closing,
    Commit,
    Declined,
    Deliver,
    Elapsed,
    Ended,
    Failure,
    Heard,
    Hinted,
    Identity,
    Lost,
    Mark,
    Opened,
    Received,
    Refused,
    Why,
)
from reattach.core.moves import (
    Effects,
    ask_status,
    attach,
    barren,
    doubts,
    end_by_status,
    fail,
    failure_of,
    finish,
    listen,
    lose,
    resync,
    start,
    stop,
    watch_behind,
)
from reattach.core.state import State
from reattach.core.table import Row, collector
from reattach.model import GapReason

WINDOW = 1_000  # newest events whose identity and digest are held; older duplicates are dropped by position alone
FOREIGN_ANSWERS = 3  # answers in a row that are not the protocol; a login page does not go away by asking

_CAUSES: dict[Why, GapReason] = {
    Why.EPOCH: "epoch",
    Why.EXPIRED: "expired",
    Why.AHEAD: "diverged",
    Why.CURSOR: "refused",
}

ROWS: list[Row] = []
row = collector(ROWS)


@row(Attached, "detached")
def attached_at_the_end(s: State, given: Attached, fx: Effects) -> State | None:
    """A journal that holds the end needs no network."""
    if given.outcome is None:
        return None
    s = s._replace(admitted=given.committed, committed=given.committed, over=True)
    fx.append(Deliver(given.committed.position))
    return finish(s, fx, outcome=given.outcome)


@row(Attached, "detached")
def attached(s: State, given: Attached, fx: Effects) -> State:
    """Deliver what is durable, ask for what comes after it, and begin the safety net."""
    s = s._replace(
        admitted=given.committed,
        committed=given.committed,
        known=given.known[-WINDOW:],
        before=given.before,
        by=s.rules.by,
    )
    fx.append(Deliver(given.committed.position))
    s = attach(s, fx)
    if s.mode == "done":  # the application takes no gap, and this server's events are one
        return s
    s = ask_status(s, fx)
    s = start(s, fx, "poll", s.rules.policy.poll_interval)
    return start(s, fx, "stall", s.rules.policy.stall_notice)


@row(Opened, "attaching")
def opened_elsewhere(s: State, given: Opened, fx: Effects) -> State | None:
    """The answer names another log than the one we know."""
    other = given.epoch is not None and s.asked.epoch is not None and given.epoch != s.asked.epoch
    return resync(s, fx, "epoch") if other else None


@row(Opened, "attaching")
def opened_on_another_event(s: State, given: Opened, fx: Effects) -> State | None:
    """The event at our cursor is not the one we have: the log lost its tail and wrote another under the same numbers.

    A server that begins at another place than ours names another event: earlier ones are judged one by one as they come.
    """
    if given.cursor_id == UNSTATED or given.sequence not in (None, s.asked.sequence):
        return None
    ours = None if s.asked.sequence == 0 else s.asked.id
    if given.cursor_id == ours or (ours is None and s.asked.sequence > 0):
        return None
    return resync(s, fx, "diverged")


@row(Opened, "attaching")
def opened_in_the_middle(s: State, given: Opened, fx: Effects) -> State | None:
    """A server that begins after another cursor than the one asked with leaves a hole."""
    if given.sequence is None or not s.rules.contiguous or given.sequence <= s.asked.sequence:
        return None
    return _hole(s, fx)


@row(Opened, "attaching")
def opened(s: State, given: Opened, fx: Effects) -> State:
    """The server took the subscription: the budget stands, silence is measured from now on."""
    s = stop(s, fx, "connect", "budget")
    stated = given.heartbeat is not None
    s = s._replace(
        mode="live",
        heartbeat=given.heartbeat if stated else s.heartbeat,
        stated=stated,
        head=given.head,
        denied=0,
        missing=0,
        barred=False,
        foreign=0,
        declined=False,
        reason="",
    )
    for doubt in given.doubts:
        s = doubts(s, fx, doubt)
    return listen(s, fx)


@row(Received, "attaching", "live")
def received(s: State, given: Received, fx: Effects) -> State:
    """Admit what one read brought, in order; commit what is next as one batch; stop at the first that proves something."""
    first = s.admitted
    arrivals = given.arrivals
    count = 0 if s.over else leading(arrivals, first)
    batch = list(arrivals[:count])
    at = _mark_at(first.position + count, batch[-1], first) if batch else first
    over = s.over or (count > 0 and batch[-1].outcome is not None)
    known = [*s.known, *map(_identity, batch)]  # what came before in this read is known too
    for arrival in arrivals[count:]:
        if over:
            break  # nothing follows a settling event; a server that sends more is not believed
        verdict = admit(arrival, at, known, contiguous=s.rules.contiguous)
        if verdict is Verdict.NEXT:
            at = _mark_at(at.position + 1, arrival, at)
            batch.append(arrival)
            known.append(_identity(arrival))
            over = arrival.outcome is not None
        elif verdict is not Verdict.DUPLICATE:
            s = _commit(s, fx, first, batch, at, known, over)
            return _disproved(s, fx, verdict, arrival)
    if not batch:
        # A long replay of what we have is no silence; and where nothing else says that the stream was taken, it does: a
        # connection that is judged by silence must be judged by what it holds back, too.
        s = stop(s, fx, "connect", "budget")
        return listen(s._replace(mode="live"), fx)
    s = _commit(s, fx, first, batch, at, known, over)
    s = stop(s, fx, "connect", "budget", "behind")
    s = start(s, fx, "stall", s.rules.policy.stall_notice)
    return listen(s._replace(mode="live"), fx)


_identity = attrgetter("sequence", "dedupe", "digest")


def _mark_at(position: int, arrival: Arrival, before: Mark) -> Mark:
    return Mark(position, arrival.epoch or before.epoch, arrival.sequence or 0, arrival.id, arrival.cursor)


def _commit(
    s: State, fx: Effects, first: Mark, batch: list[Arrival], at: Mark, known: list[Identity], over: bool
) -> State:
    if not batch:
        return s
    if not s.fresh and batch[0].prev_id == UNSTATED and s.rules.contiguous:
        s = doubts(
            s, fx, "events do not name their predecessor: a log rewritten under the same numbers may go unnoticed"
        )
    fx.append(Commit(first, tuple(batch), at))
    return s._replace(
        admitted=at,
        known=tuple(known[-WINDOW:]),
        flying=s.flying + 1,
        fresh=True,
        # Which log it is was not known before its first event: an answer that was asked for then may be of an older one.
        era=s.era + 1 if s.admitted.epoch is None and at.epoch is not None else s.era,
        over=over,
        hole=-1,
        resyncs=0,
        loops=0,
        denied=0,
        missing=0,
        barred=False,
        foreign=0,
        garbled=0,
        settled=None,
        owed=0,
        withheld=0,
    )


def _disproved(s: State, fx: Effects, verdict: Verdict, arrival: Arrival) -> State:
    match verdict:
        case Verdict.CONFLICT:
            fx.append(Close())
            return finish(s, fx, failure=Failure("event_conflict", arrival.cursor or arrival.id))
        case Verdict.HOLE:
            return _hole(s, fx)
        case Verdict.OTHER_EPOCH:
            return resync(s, fx, "epoch")
        case _:
            return resync(s, fx, "diverged")


def _hole(s: State, fx: Effects) -> State:
    """Once is a fault of the connection; twice at one cursor is a hole in the log."""
    if s.hole == s.committed.position:
        return resync(s, fx, "hole")
    return lose(s._replace(hole=s.committed.position), fx, "an event was left out")


@row(Heard, "attaching", "live")
def heard(s: State, given: Heard, fx: Effects) -> State | None:
    """Any byte is liveness, once the stream has begun. A large event that is still arriving is not held back either."""
    if "idle" not in s.timers:
        return None
    if given.growing and "behind" in s.timers:
        s = watch_behind(stop(s, fx, "behind"), fx)
    if given.beat is not None and not s.stated:
        beats, heartbeat = observed(s.beats, given.beat)
        s = s._replace(beats=beats, heartbeat=s.heartbeat if heartbeat is None else heartbeat)
    return listen(s, fx)


@row(Hinted, "attaching", "live")
def hinted(s: State, given: Hinted, fx: Effects) -> State:
    """The stream's wish for the pace of reconnects."""
    return s._replace(backoff=s.backoff.hinted(given.seconds))


@row(Lost, "attaching", "live")
def lost(s: State, given: Lost, fx: Effects) -> State:
    """The connection broke: nothing is known about the run by that."""
    return lose(s, fx, given.detail or "connection lost")


@row(Declined, "attaching")
@row(Ended, "attaching", "live")
def ended_at_the_tail(s: State, given: Ended | Declined, fx: Effects) -> State | None:
    """Positions cannot be compared: settled by status, and an attach opened after that answer ended cleanly with nothing."""
    if s.settled is None or s.attempt <= s.settled_at or s.fresh or s.flying:
        return None
    return end_by_status(s, fx, s.settled)


@row(Ended, "attaching", "live")
def ended(s: State, given: Ended, fx: Effects) -> State:
    """A clean end of the body is a loss like any other; only the settling event is an end."""
    s = barren(s) if s.mode == "live" else s
    return lose(s, fx, "the stream ended without the run's end", accepted=True)


@row(Refused, "attaching", "live")
def refused_for_now(s: State, given: Refused, fx: Effects) -> State | None:
    """Busy: wait, never at once, at least as long as the server says; not beyond the budget."""
    refusal = given.refusal
    if refusal.why is not Why.BUSY:
        return None
    after = refusal.retry_after
    if after is not None and given.left is not None and after > given.left:
        return fail(s, fx, Failure("reconnect_exhausted", f"the server asked to wait {after:g} s", refusal))
    window, backoff = s.backoff.delayed(s.rules.policy, retry_after=after)
    return lose(s._replace(backoff=backoff), fx, refusal.detail or "busy", window=window)


@row(Refused, "attaching", "live")
def refused_the_token(s: State, given: Refused, fx: Effects) -> State | None:
    """One 401 is an old token: it is asked for again at the next attempt. A second without a good answer between is the end."""
    if given.refusal.why is not Why.UNAUTHENTICATED or s.denied not in (0, s.attempt):
        return None
    window, backoff = s.backoff.delayed(s.rules.policy)
    s = s._replace(denied=s.attempt, barred=True, backoff=backoff)
    return lose(s, fx, given.refusal.detail or "the token was refused", window=window)


@row(Refused, "attaching", "live")
def refused_as_missing(s: State, given: Refused, fx: Effects) -> State | None:
    """The first 404 of a run that we know exists may be a replica that does not know it yet."""
    if given.refusal.why is not Why.NOT_FOUND or not s.before or s.missing not in (0, s.attempt):
        return None
    return lose(s._replace(missing=s.attempt, barred=True), fx, given.refusal.detail or "the run was not found")


@row(Refused, "attaching", "live")
def refused_the_cursor(s: State, given: Refused, fx: Effects) -> State | None:
    """A refused cursor is never sent again."""
    cause = _CAUSES.get(given.refusal.why)
    return None if cause is None else resync(s, fx, cause, given.refusal)


@row(Refused, "attaching", "live")
def refused_by_another_protocol(s: State, given: Refused, fx: Effects) -> State | None:
    """A login page, a proxy's error: twice may pass, the third in a row without an attach is for a person.

    So is the third stream in a row that was attached, brought no new event and then what is not the protocol's: an attach does
    not mend what the server holds at this cursor.
    """
    live = s.mode == "live"
    count = 1 + (s.garbled if live else s.foreign)
    if given.refusal.why is not Why.FOREIGN or count >= FOREIGN_ANSWERS:
        return None
    s = s._replace(garbled=count) if live else s._replace(foreign=count)
    window, backoff = s.backoff.delayed(s.rules.policy)
    return lose(s._replace(backoff=backoff), fx, given.refusal.detail, window=window)


@row(Refused, "attaching", "live")
def refused(s: State, given: Refused, fx: Effects) -> State:
    """No repetition can mend it."""
    return fail(s, fx, failure_of(given.refusal))


@row(Declined, "attaching")
def declined(s: State, given: Declined, fx: Effects) -> State:
    """204: nothing to stream. The status knows why; the stream is tried again at the pace of the poll."""
    pace = s.rules.policy.poll_interval
    s = lose(barren(s), fx, "the server stopped streaming (204)", window=Window(pace, pace * 1.25), accepted=False)
    return s._replace(declined=True)


@row(Closing, "attaching", "live")
def closing_for_good(s: State, given: Closing, fx: Effects) -> State | None:
    """The log moved on under us."""
    match given.reason:
        case "epoch_changed":
            return resync(s, fx, "epoch")
        case "cursor_expired":
            return resync(s, fx, "expired")
        case _:
            return None


@row(Closing, "attaching", "live")
def closing(s: State, given: Closing, fx: Effects) -> State:
    """A planned close is not a failure: a jittered wait, not counted, never at once."""
    backoff = s.backoff if given.retry is None else s.backoff.hinted(given.retry)
    window, backoff = backoff.delayed(s.rules.policy, counted=False)
    return lose(s._replace(backoff=backoff), fx, f"the server closed the stream ({given.reason})", window=window)


@row(Elapsed, "attaching", "live")
def idle_elapsed(s: State, given: Elapsed, fx: Effects) -> State | None:
    """Silence beyond the heartbeat: open, but not alive."""
    return lose(s, fx, "silence beyond the heartbeat") if given.timer == "idle" else None


@row(Elapsed, "waiting")
def reconnect_elapsed(s: State, given: Elapsed, fx: Effects) -> State | None:
    """The wait is over."""
    return attach(s, fx) if given.timer == "reconnect" else None


@row(Elapsed, "attaching", "waiting", "polling", "resyncing")
def budget_elapsed(s: State, given: Elapsed, fx: Effects) -> State | None:
    """Neither an attach nor a status answer for the whole budget."""
    return fail(s, fx, Failure("reconnect_exhausted", s.reason)) if given.timer == "budget" else None
