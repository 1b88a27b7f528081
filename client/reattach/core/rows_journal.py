"""Rows of what the journal answers, and of the pace and the end that the application sets.

Nothing but a commit ever delivers; nothing that is not durable is ever shown.
"""

from __future__ import annotations

from reattach.core.messages import (
    Close,
    Closed,
    CommitFailed,
    Committed,
    Deliver,
    Drained,
    Failure,
    Full,
    LeaseLost,
    OutcomeCommitted,
)
from reattach.core.moves import ON_CONNECTION, Effects, attach, finish, stop
from reattach.core.state import State
from reattach.core.table import ANY, Row, collector

ROWS: list[Row] = []
row = collector(ROWS)


@row(Committed, *ANY)
def committed_the_end(s: State, given: Committed, fx: Effects) -> State | None:
    """The settling event is durable: the run has ended, by evidence."""
    if given.outcome is None:
        return None
    fx.append(Deliver(given.mark.position))
    fx.append(Close())
    return finish(s, fx, outcome=given.outcome)


@row(Committed, *ANY)
def committed(s: State, given: Committed, fx: Effects) -> State:
    """Nothing else ever delivers."""
    fx.append(Deliver(given.mark.position))
    return s


@row(OutcomeCommitted, "ending")
def outcome_committed(s: State, given: OutcomeCommitted, fx: Effects) -> State:
    """An outcome known by status alone is durable: now it may be shown."""
    return finish(s, fx, outcome=given.outcome)


@row(CommitFailed, *ANY)
def commit_failed(s: State, given: CommitFailed, fx: Effects) -> State:
    """Never deliver what is not durable."""
    fx.append(Close())
    return finish(s, fx, failure=Failure("commit_failed", given.detail))


@row(LeaseLost, *ANY)
def lease_lost(s: State, given: LeaseLost, fx: Effects) -> State:
    """Another owner writes now."""
    fx.append(Close())
    return finish(s, fx, failure=Failure("lease_lost", given.detail))


@row(Full, "attaching", "live", "waiting", "polling")
def full(s: State, given: Full, fx: Effects) -> State:
    """The handler is behind and nothing keeps what we would read: stop reading. Time stands meanwhile."""
    fx.append(Close())
    s = stop(s, fx, "reconnect", "budget", *ON_CONNECTION)
    return s._replace(mode="parked", fresh=False)


@row(Drained, "parked")
def drained_by_handler(s: State, given: Drained, fx: Effects) -> State:
    """The handler caught up."""
    return attach(s, fx)


@row(Closed, *ANY)
def closed(s: State, given: Closed, fx: Effects) -> State:
    """The caller stopped following: commits settle undelivered, the run goes on."""
    fx.append(Close())
    s = stop(s, fx, *sorted(s.timers))
    return s._replace(mode="done", known=())
