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
    Failure,
    Lost,
    Mark,
    Opened,
    Refusal,
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
    read_snapshot,
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
    return reload(s, fx) if given.timer == "resync" else None


@row(Elapsed, "resyncing")
def connect_elapsed_at_the_earliest(s: State, given: Elapsed, fx: Effects) -> State | None:
    """No answer in time: close before the timer asks again, or there would be two connections."""
    if given.timer != "connect":
        return None
    fx.append(Close())
    return retry_resync(s, fx)


@row(SnapshotRead, "resyncing")
def snapshot_read(s: State, given: SnapshotRead, fx: Effects) -> State | None:
    """The boundary is here: journal it as a gap."""
    if given.era != s.era or not drained(s):
        return None
    return retry_resync(s, fx) if _older(s, given.boundary) else _adopt(s, fx, given.boundary, given.state)


@row(SnapshotFailed, "resyncing")
def snapshot_failed(s: State, given: SnapshotFailed, fx: Effects) -> State | None:
    """A missing run or a refused token ends it; all else is asked again when the timer fires."""
    if given.era != s.era or not drained(s):
        return None
    return _denied(s, fx, given.refusal)


@row(Opened, "resyncing")
def opened_at_the_earliest(s: State, given: Opened, fx: Effects) -> State:
    """on_gap="continue": where the server begins is the boundary; it must lie beyond what we have, or nothing is skipped."""
    fx.append(Close())
    s = stop(s, fx, *ON_CONNECTION)
    identity = None if given.cursor_id == UNSTATED else given.cursor_id
    boundary = Mark(0, given.epoch, given.sequence or 0, identity, given.cursor)
    if not _older(s, boundary):
        return _adopt(s, fx, boundary, None)
    if s.cause == "expired":  # the server has them after all: another replica, or a longer retention
        return attach(s, fx)
    return finish(s, fx, failure=Failure("gap_unfillable", "the oldest event kept lies before the hole", None, s.cause))


@row(Refused, "resyncing")
def refused_at_the_earliest(s: State, given: Refused, fx: Effects) -> State:
    """Likewise for a boundary that could not be had by attaching."""
    fx.append(Close())
    return _denied(stop(s, fx, *ON_CONNECTION), fx, given.refusal)


@row(Declined, "resyncing")
def declined_at_the_earliest(s: State, given: Declined, fx: Effects) -> State:
    """204: the run has settled and keeps no event; its state alone tells where the log ends."""
    fx.append(Close())
    return read_snapshot(stop(s, fx, *ON_CONNECTION), fx)


@row(Lost, "resyncing")
@row(Ended, "resyncing")
def lost_at_the_earliest(s: State, given: Lost | Ended, fx: Effects) -> State:
    """Close; the timer asks again."""
    fx.append(Close())
    return retry_resync(stop(s, fx, *ON_CONNECTION), fx)


def _denied(s: State, fx: Effects, refusal: Refusal) -> State:
    """A missing run or a token refused twice is the end; all else is asked again, never sooner than the server says."""
    match refusal.why:
        case Why.NOT_FOUND | Why.FORBIDDEN | Why.OTHER | Why.OVERSIZE:
            return finish(s, fx, failure=failure_of(refusal))
        case Why.UNAUTHENTICATED if s.denied:
            return finish(s, fx, failure=failure_of(refusal))
        case Why.UNAUTHENTICATED:
            return retry_resync(s._replace(denied=s.attempt), fx)
        case _:
            return retry_resync(s, fx, refusal.retry_after)


def _older(s: State, boundary: Mark) -> bool:
    """A boundary of the same log that we have passed: a lagging replica's, it fills nothing."""
    if s.cause not in ("expired", "hole") or boundary.epoch is None or boundary.epoch != s.committed.epoch:
        return False
    return boundary.sequence <= s.committed.sequence and s.committed.sequence > 0


def _adopt(s: State, fx: Effects, boundary: Mark, state: Any) -> State:
    mark = boundary._replace(position=s.committed.position + 1)
    same = boundary.epoch is not None and boundary.epoch == s.committed.epoch
    missing = boundary.sequence - s.committed.sequence if same and boundary.sequence >= s.committed.sequence else None
    s = stop(s, fx, "resync", "budget")
    fx.append(CommitGap(s.committed, s.cause or "hole", mark, missing, state))
    return s._replace(flying=s.flying + 1, gapping=True, denied=0)


@row(Committed, "resyncing")
def gap_committed(s: State, given: Committed, fx: Effects) -> State | None:
    """The gap is journaled: deliver it in its place, forget the old log, go on after the boundary."""
    if not given.gap:
        return None
    s = s._replace(admitted=given.mark, known=(), gapping=False, hole=-1, era=s.era + 1, loops=0, settled=None)
    fx.append(Deliver(given.mark.position))
    s = attach(s, fx)
    return ask_status(s, fx)


@row(Committed, "resyncing")
def drained_by_commit(s: State, given: Committed, fx: Effects) -> State | None:
    """The last commit in flight has settled: now the boundary may be asked for."""
    if not drained(s):
        return None
    fx.append(Deliver(given.mark.position))
    return reload(s, fx)
