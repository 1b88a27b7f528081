"""Rows of a subscription whose place in the log is worth nothing any more: adopt a boundary, journal the gap, go on after it."""

from __future__ import annotations

from reattach.core.messages import (
    UNSTATED,
    Close,
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
    adopt,
    ask_status,
    attach,
    drained,
    end_by_status,
    failure_of,
    finish,
    join,
    listen,
    read_snapshot,
    reload,
    retry_resync,
    stop,
)
from reattach.core.state import State
from reattach.core.table import Row, collector

_OF_CURSORS = (Why.EPOCH, Why.EXPIRED, Why.AHEAD, Why.CURSOR)

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
    s = _hang_up(s, fx)
    if _older(s, given.boundary):
        return retry_resync(s, fx)
    if s.cause == "no_log" and _unchanged(s, given.boundary):
        s = stop(s, fx, "resync")
        return join(s, fx) if s.settled is None else end_by_status(s, fx, s.settled)
    return adopt(s, fx, given.boundary, given.state)


@row(SnapshotFailed, "resyncing")
def snapshot_failed(s: State, given: SnapshotFailed, fx: Effects) -> State | None:
    """A missing run or a refused token ends it; all else is asked again when the timer fires."""
    if given.era != s.era or not drained(s):
        return None
    return _denied(_hang_up(s, fx), fx, given.refusal)


@row(Opened, "resyncing")
def opened_at_the_earliest(s: State, given: Opened, fx: Effects) -> State:
    """on_gap="continue": where the server begins is the boundary; it must lie beyond what we have, or nothing is skipped.

    The connection is kept, and what it brings is committed behind the gap: asked once more, after a boundary that lies at the
    edge of what is kept, a server that keeps little would have trimmed beyond it again.
    """
    identity = None if given.cursor_id == UNSTATED else given.cursor_id
    boundary = Mark(0, given.epoch, given.sequence or 0, identity, given.cursor)
    if not _older(s, boundary):
        s = stop(adopt(s, fx, boundary, None), fx, "connect")
        mark = boundary._replace(position=s.committed.position + 1)
        s = _after_the_gap(s._replace(asked=mark, head=given.head, reason=""), mark)
        s = s._replace(mode="live", heartbeat=s.heartbeat if given.heartbeat is None else given.heartbeat)
        return listen(ask_status(s, fx), fx)
    fx.append(Close())
    s = stop(s, fx, *ON_CONNECTION)
    if s.cause == "expired":  # the server has them after all: another replica, or a longer retention
        return attach(s, fx)
    return finish(s, fx, failure=Failure("gap_unfillable", "the oldest event kept lies before the hole", None, s.cause))


@row(Refused, "resyncing")
def refused_at_the_earliest(s: State, given: Refused, fx: Effects) -> State:
    """Likewise for a boundary that could not be had by attaching.

    A server that calls its own oldest event gone may do so once, from a replica that lags; again, and no wait mends it.
    """
    fx.append(Close())
    s = stop(s, fx, *ON_CONNECTION)
    if given.refusal.why in _OF_CURSORS:
        if s.foreign:
            return finish(
                s, fx, failure=Failure("gap_unfillable", "the oldest event is refused", given.refusal, s.cause)
            )
        s = s._replace(foreign=1)
    return _denied(s, fx, given.refusal)


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


def _hang_up(s: State, fx: Effects) -> State:
    """A snapshot that was slow has answered after all; meanwhile the oldest event kept may have been asked for anew."""
    if "connect" not in s.timers:
        return s
    fx.append(Close())
    return stop(s, fx, "connect")


def _unchanged(s: State, boundary: Mark) -> bool:
    """A server without a log tells the state that we have: nothing happened since."""
    return s.committed.position > 0 and boundary.cursor is not None and boundary.cursor == s.committed.cursor


def _after_the_gap(s: State, mark: Mark) -> State:
    """Forget the old log; answers that were asked for before this are of no use any more."""
    return s._replace(admitted=mark, known=(), hole=-1, era=s.era + 1, loops=0, settled=None, owed=0, withheld=0)


@row(Committed, "resyncing")
def gap_committed(s: State, given: Committed, fx: Effects) -> State | None:
    """The gap is journaled: deliver it in its place, forget the old log, go on after the boundary.

    One behind which events were admitted already is like any other commit.
    """
    if not given.gap or s.admitted.position >= given.mark.position:
        return None
    ended = s.settled if s.cause == "no_log" else None
    s = _after_the_gap(s, given.mark)
    fx.append(Deliver(given.mark.position))
    if ended is not None:  # the state was asked for after the status had told the end
        return end_by_status(s, fx, ended)
    return ask_status(join(s, fx), fx)


@row(Committed, "resyncing")
def drained_by_commit(s: State, given: Committed, fx: Effects) -> State | None:
    """The last commit in flight has settled: now the boundary may be asked for."""
    if not drained(s):
        return None
    fx.append(Deliver(given.mark.position))
    return reload(s, fx)
