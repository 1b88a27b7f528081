"""Rows of a subscription whose place in the log is worth nothing any more: adopt a boundary, journal the gap, go on after it."""

from __future__ import annotations

from typing import Any

from reattach.core.messages import (
    UNSTATED,
    Close,
    CommitGap,
    Committed,
    Declined,
    Deliver,
    Elapsed,
    Ended,
    Input,
    Lost,
    Mark,
    Opened,
    Refused,
    SnapshotFailed,
    SnapshotRead,
    Why,
)
from reattach.core.moves import (
    ON_CONNECTION,
    Effects,
    ask_status,
    attach,
    drained,
    failure_of,
    finish,
    reload,
    retry_resync,
    stop,
)
from reattach.core.state import State
from reattach.core.table import Row, collector

ROWS: list[Row] = []
row = collector(ROWS)


@row(Elapsed, "resyncing")
def resync_elapsed(s: State, given: Elapsed, fx: Effects) -> State | None:
    """Ask for the boundary again."""
    if given.timer != "resync":
        return None
    s = retry_resync(s, fx)
    if not drained(s):
        return s
    if "connect" in s.timers:
        fx.append(Close())
    return reload(s, fx)


@row(SnapshotRead, "resyncing")
def snapshot_read(s: State, given: SnapshotRead, fx: Effects) -> State | None:
    """The boundary is here: journal it as a gap."""
    if given.era != s.era or not drained(s):
        return None
    return _adopt(s, fx, given.boundary, given.state)


@row(SnapshotFailed, "resyncing")
def snapshot_failed(s: State, given: SnapshotFailed, fx: Effects) -> State | None:
    """A missing run or a refused token ends it; all else is asked again when the timer fires."""
    if given.era != s.era:
        return None
    match given.refusal.why:
        case Why.NOT_FOUND | Why.FORBIDDEN | Why.OTHER | Why.OVERSIZE:
            return finish(s, fx, failure=failure_of(given.refusal))
        case Why.UNAUTHENTICATED:
            if s.denied:
                return finish(s, fx, failure=failure_of(given.refusal))
            return s._replace(denied=max(1, s.attempt))
        case _:
            return s


@row(Opened, "resyncing")
def opened_at_the_earliest(s: State, given: Opened, fx: Effects) -> State:
    """on_gap="continue": where the server begins is the boundary."""
    fx.append(Close())
    s = stop(s, fx, *ON_CONNECTION, "budget")
    identity = None if given.cursor_id == UNSTATED else given.cursor_id
    return _adopt(s, fx, Mark(0, given.epoch, given.sequence or 0, identity, given.cursor), None)


@row(Refused, "resyncing")
def refused_at_the_earliest(s: State, given: Refused, fx: Effects) -> State:
    """Likewise for a boundary that could not be had by attaching."""
    fx.append(Close())
    s = stop(s, fx, *ON_CONNECTION)
    if given.refusal.why in (Why.NOT_FOUND, Why.FORBIDDEN, Why.UNAUTHENTICATED, Why.OTHER):
        return finish(s, fx, failure=failure_of(given.refusal))
    return s


@row(Lost, "resyncing")
@row(Ended, "resyncing")
@row(Declined, "resyncing")
def lost_at_the_earliest(s: State, given: Input, fx: Effects) -> State:
    """Close; the timer asks again."""
    fx.append(Close())
    return stop(s, fx, *ON_CONNECTION)


def _adopt(s: State, fx: Effects, boundary: Mark, state: Any) -> State:
    mark = boundary._replace(position=s.committed.position + 1)
    same = boundary.epoch is not None and boundary.epoch == s.committed.epoch
    missing = boundary.sequence - s.committed.sequence if same and boundary.sequence >= s.committed.sequence else None
    fx.append(CommitGap(s.committed, s.cause or "hole", mark, missing, state))
    return s._replace(flying=s.flying + 1, gapping=True)


@row(Committed, "resyncing")
def gap_committed(s: State, given: Committed, fx: Effects) -> State | None:
    """The gap is journaled: deliver it in its place, forget the old log, go on after the boundary."""
    if not given.gap:
        return None
    s = s._replace(admitted=given.mark, known=(), gapping=False, hole=-1, era=s.era + 1, over=False, settled=None)
    fx.append(Deliver(given.mark.position))
    s = attach(s, fx)
    return ask_status(s, fx)


@row(Committed, "resyncing")
def drained_by_commit(s: State, given: Committed, fx: Effects) -> State | None:
    """The last commit in flight has settled: now the boundary may be asked for (an end needs none)."""
    if given.outcome is not None or not drained(s):
        return None
    fx.append(Deliver(given.mark.position))
    return reload(s, fx)
