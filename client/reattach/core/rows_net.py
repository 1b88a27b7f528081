"""Rows of the safety net: the slow status poll and the notice of a stall. It never finishes early."""

from __future__ import annotations

from reattach.core.messages import Elapsed, Notice, StatusFailed, StatusRead, Why
from reattach.core.moves import (
    Effects,
    ask_status,
    budget,
    end_by_status,
    fail,
    failure_of,
    resync,
    start,
    stop,
    watch_behind,
)
from reattach.core.path import proven
from reattach.core.polling import Implication, implication
from reattach.core.rows_poll import look
from reattach.core.state import State
from reattach.core.table import ANY, FOLLOWING, Row, collector

ROWS: list[Row] = []
row = collector(ROWS)


@row(Elapsed, *ANY)
def poll_elapsed(s: State, given: Elapsed, fx: Effects) -> State | None:
    """The slow poll never stops. A connection that lives through one is no fast loop."""
    if given.timer != "poll":
        return None
    if s.mode == "live":
        s = s._replace(loops=0)
    if s.mode == "polling":
        s = s._replace(attempt=s.attempt + 1)
    if not s.reading and s.mode not in ("resyncing", "ending"):
        s = ask_status(s, fx)
    return start(s, fx, "poll", s.rules.policy.poll_interval)


@row(Elapsed, *ANY)
def stall_elapsed(s: State, given: Elapsed, fx: Effects) -> State | None:
    """No event for long, though the server answers: a notice, and nothing is begun again."""
    if given.timer != "stall":
        return None
    limit = s.rules.policy.stall_notice
    fx.append(Notice("stall", f"no event for {limit:g} s"))
    return start(s, fx, "stall", limit)


@row(StatusRead, *FOLLOWING)
def status_of_another_epoch(s: State, given: StatusRead, fx: Effects) -> State | None:
    """Epochs are compared before numbers."""
    if implication(given, s.admitted, s.committed) is not Implication.OTHER_EPOCH:
        return None
    return resync(s, fx, "epoch")


@row(StatusRead, *FOLLOWING)
def status_settled(s: State, given: StatusRead, fx: Effects) -> State | None:
    """Settled, and nothing above what is committed: the end whose event never came. What is in flight settles first."""
    if given.outcome is None or s.flying or implication(given, s.admitted, s.committed) is not Implication.FINISHED:
        return None
    return end_by_status(s, fx, given.outcome)


@row(StatusRead, *FOLLOWING)
def status_answered(s: State, given: StatusRead, fx: Effects) -> State:
    """The server is there: the budget begins again. What it has above us must come."""
    said = implication(given, s.admitted, s.committed)
    s = s._replace(head=given.head if given.head is not None else s.head, answered=True)
    if not s.barred:  # what the stream refused, only the stream can grant
        s = s._replace(denied=0, missing=0)
    if given.outcome is not None and said is Implication.BEHIND and not s.owed:
        s = s._replace(owed=s.attempt)
    if s.mode == "polling":
        return look(stop(s, fx, "budget"), given, said, fx)
    if s.mode in ("attaching", "waiting"):
        s = budget(s, fx, anew=True)
    if s.declined and not given.status.settled:
        fx.append(Notice("declined", f"the server stopped streaming, but the run is {given.status.value}"))
    s = s._replace(declined=False)
    if said is Implication.SETTLED_UNCOMPARABLE and s.settled is None:
        # Only an attach that is opened after this answer is sure to bring all that the run ever wrote.
        s = s._replace(settled=given.outcome, settled_at=s.attempt)
    if s.mode != "live":
        return s
    if said is Implication.SETTLED_UNCOMPARABLE or (said is Implication.BEHIND and s.rules.replays):
        return watch_behind(s, fx)
    return proven(s)


@row(StatusFailed, "attaching", "waiting", "polling")
def status_missing(s: State, given: StatusFailed, fx: Effects) -> State | None:
    """404 by status and by stream in one attempt count as one."""
    if given.refusal.why is not Why.NOT_FOUND:
        return None
    if s.before and s.missing in (0, given.attempt):
        return s._replace(missing=given.attempt)
    return fail(s, fx, failure_of(given.refusal))


@row(StatusFailed, "attaching", "waiting", "polling")
def status_denied(s: State, given: StatusFailed, fx: Effects) -> State | None:
    """401 by status and by stream in one attempt count as one; 403 is definite."""
    if given.refusal.why is Why.FORBIDDEN:
        return fail(s, fx, failure_of(given.refusal))
    if given.refusal.why is not Why.UNAUTHENTICATED:
        return None
    if s.denied in (0, given.attempt):
        return s._replace(denied=given.attempt)
    return fail(s, fx, failure_of(given.refusal))


@row(StatusFailed, *FOLLOWING)
def status_unanswered(s: State, given: StatusFailed, fx: Effects) -> State:
    """Asked again by the poll, and not sooner than the server says. With nothing but the status to go by, time runs out."""
    after = given.refusal.retry_after
    if after is not None and after > s.rules.policy.poll_interval:
        s = start(s, fx, "poll", after, after + s.rules.policy.retry_base)
    return budget(s, fx) if s.mode == "polling" else s
