"""Moves that several rows of the table share: attach, lose, resync, reload, ask for the status, finish.

Each takes a state and the effects so far, appends effects in order, and returns the new state. At most one connection, one status
read and one timer of each name exist in every state; these functions are the only place that opens, closes and arms.
"""

from __future__ import annotations

from typing import Any

from reattach.core.backoff import Window
from reattach.core.liveness import BEHIND_LIMIT, idle_limit
from reattach.core.messages import (
    EARLIEST,
    Close,
    CommitGap,
    CommitOutcome,
    Effect,
    Failure,
    Finish,
    Mark,
    Notice,
    Open,
    ReadSnapshot,
    ReadStatus,
    Refusal,
    StartTimer,
    StopTimer,
    TimerName,
    Why,
)
from reattach.core.state import State
from reattach.model import GapReason, Outcome

Effects = list[Effect]
LOOPS = 10  # attaches at one cursor without an event, then one a poll interval (contract.md, promise 9)
WITHHELD = 10  # attaches without an event although the status tells an end above what we have: then it is a hole
RESYNCS = 3  # new boundaries without a new event between, then the gap cannot be filled
REPEATS = 3.0  # a finite read is one request and at most two repeats, each within the connect limit
ON_CONNECTION: tuple[TimerName, ...] = ("connect", "idle", "behind")

_GAP_FAILURE: dict[GapReason, str] = {
    "expired": "cursor_expired",
    "epoch": "epoch_changed",
    "diverged": "epoch_changed",
    "refused": "cursor_refused",
    "hole": "gap_unfillable",
    "no_log": "gap_unfillable",
}


def start(s: State, fx: Effects, timer: TimerName, low: float, high: float | None = None) -> State:
    """Arm the timer, anew if it runs."""
    fx.append(StartTimer(timer, low, low if high is None else high))
    return s if timer in s.timers else s._replace(timers=s.timers | {timer})


def stop(s: State, fx: Effects, *timers: TimerName) -> State:
    """Disarm those of the timers that run."""
    running = [timer for timer in timers if timer in s.timers]
    if not running:
        return s
    fx.extend(StopTimer(timer) for timer in running)
    return s._replace(timers=s.timers.difference(running))


def listen(s: State, fx: Effects) -> State:
    """Something came on the connection: give it another idle limit."""
    return start(s, fx, "idle", idle_limit(s.rules.policy, s.heartbeat))


def budget(s: State, fx: Effects, *, anew: bool = False) -> State:
    """Let the budget of time run; `anew` begins it again."""
    allowed = s.rules.policy.give_up_after
    if allowed is None or ("budget" in s.timers and not anew):
        return s
    return start(s, fx, "budget", allowed)


def ask_status(s: State, fx: Effects) -> State:
    """Read the status; while one is out, once more after it has answered."""
    if s.reading:
        return s._replace(reading=2)
    fx.append(ReadStatus(s.era, s.attempt))
    return s._replace(reading=1)


def attach(s: State, fx: Effects) -> State:
    """Ask for what comes after the committed cursor; where the server cannot send that again, for its state first."""
    return join(s, fx) if s.rules.replays else resync(s, fx, "no_log")


def join(s: State, fx: Effects) -> State:
    """Open a connection after the committed cursor; with nothing to open, go by the status."""
    if s.by == "poll" and not s.rules.replays:
        return go_by_status(s, fx)
    if s.gapping:  # its boundary is not durable yet, and the place before it is worth nothing
        return start(s, fx, "reconnect", s.rules.policy.retry_floor)
    s = stop(s, fx, "reconnect", "resync", "idle", "behind")
    s = s._replace(mode="attaching", asked=s.committed, attempt=s.attempt + 1, fresh=False)
    fx.append(Open(s.committed.cursor, s.attempt, s.by))
    s = start(s, fx, "connect", s.rules.policy.connect_timeout)
    return budget(s, fx)


def go_by_status(s: State, fx: Effects) -> State:
    """Nothing is open: the slow status poll tells when there is something to fetch."""
    fx.append(Close())
    s = stop(s, fx, "reconnect", "resync", "budget", *ON_CONNECTION)
    return s._replace(mode="polling", fresh=False, reason="")


def barren(s: State) -> State:
    """The server said that this is all, and it was nothing: count it if the status told before that there is an end to bring.

    A connection that broke says nothing, and neither does a 200 without the server's first sign: both are the path's.
    """
    return s._replace(withheld=s.withheld + 1) if s.owed and s.attempt > s.owed and not s.fresh else s


def lose(s: State, fx: Effects, reason: str, *, window: Window | None = None, accepted: bool | None = None) -> State:
    """Close what is left of the connection, wait, and ask for the status meanwhile. `admitted` stays.

    Args:
        s: The state.
        fx: The effects so far.
        reason: For a person: why.
        window: The wait; None lets the backoff decide.
        accepted: Whether the server had taken the subscription (default: the mode is live); such attaches without an event are
            counted against a fast loop.
    """
    policy = s.rules.policy
    if s.over:
        return await_the_end(s, fx)
    taken = s.mode == "live" if accepted is None else accepted
    if s.withheld >= WITHHELD and not s.flying:
        return resync(s, fx, "hole")
    fx.append(Close())
    s = stop(s, fx, *ON_CONNECTION)
    loops = s.loops + 1 if taken and not s.fresh else s.loops
    if window is None:
        window, backoff = s.backoff.at_once() if s.fresh else s.backoff.delayed(policy)
        s = s._replace(backoff=backoff)
    if loops >= LOOPS:
        if s.loops < LOOPS:
            fx.append(
                Notice("fast_loop", f"{loops} attaches at one cursor brought no event; now one each poll interval")
            )
        window = Window(max(policy.poll_interval, window.low), max(policy.poll_interval * 1.25, window.high))
    s = s._replace(mode="waiting", fresh=False, loops=loops, reason=reason, floor=window.low, answered=False)
    s = start(s, fx, "reconnect", window.low, window.high)
    s = budget(s, fx)
    return ask_status(s, fx)


def drained(s: State) -> bool:
    """Whether nothing is in flight, so that a boundary may be adopted."""
    return s.flying == 0 and not s.gapping


def resync(s: State, fx: Effects, cause: GapReason, refusal: Refusal | None = None) -> State:
    """Our place in the log is worth nothing any more: settle what is in flight, then adopt a boundary or say so."""
    if s.over:
        return await_the_end(s, fx)
    fx.append(Close())
    s = stop(s, fx, "reconnect", *ON_CONNECTION)
    s = s._replace(
        mode="resyncing",
        cause=cause,
        refusal=refusal,
        fresh=False,
        resyncs=s.resyncs if cause == "no_log" else s.resyncs + 1,
        reason=cause,
        reading=min(s.reading, 1),
        denied=0,
        barred=False,
        missing=0,
    )
    if s.resyncs > RESYNCS:
        return finish(s, fx, failure=Failure("gap_unfillable", "three resyncs brought no new event", refusal, cause))
    s = budget(s, fx)
    return reload(s, fx) if drained(s) else s


def retry_resync(s: State, fx: Effects, retry_after: float | None = None) -> State:
    """The boundary could not be had: ask again after a wait of the backoff, at least as long as the server says."""
    window, backoff = s.backoff.delayed(s.rules.policy, retry_after=retry_after)
    return start(s._replace(backoff=backoff), fx, "resync", window.low, window.high)


def reload(s: State, fx: Effects) -> State:
    """Get a boundary to go on from, as the application chose; or end with what is missing.

    The timer that asks again gives this read the time that it may take.
    """
    cause = s.cause or "hole"
    match s.rules.on_gap:
        case "raise":
            return finish(s, fx, failure=Failure(_GAP_FAILURE[cause], s.reason, s.refusal, cause))
        case "snapshot":
            return read_snapshot(s, fx)
        case _ if cause == "no_log":  # nothing is kept that one could go on at: the label is all
            return adopt(s, fx, Mark(epoch=s.committed.epoch), None)
        case _:
            s = s._replace(attempt=s.attempt + 1)
            fx.append(Open(EARLIEST, s.attempt, s.by))
            return start(s, fx, "connect", s.rules.policy.connect_timeout)


def read_snapshot(s: State, fx: Effects) -> State:
    """Ask for the server's state at a boundary, and once more when it has not come in time."""
    fx.append(ReadSnapshot(s.era))
    return start(s, fx, "resync", REPEATS * s.rules.policy.connect_timeout)


def adopt(s: State, fx: Effects, boundary: Mark, state: Any) -> State:
    """Journal the gap up to a boundary; the stream goes on after it."""
    mark = boundary._replace(position=s.committed.position + 1)
    same = boundary.epoch is not None and boundary.epoch == s.committed.epoch
    missing = boundary.sequence - s.committed.sequence if same and boundary.sequence >= s.committed.sequence else None
    s = stop(s, fx, "resync", "budget")
    fx.append(CommitGap(s.committed, s.cause or "hole", mark, missing, state))
    return s._replace(flying=s.flying + 1, gapping=True, denied=0)


def finish(s: State, fx: Effects, *, outcome: Outcome | None = None, failure: Failure | None = None) -> State:
    """End the subscription: nothing runs, nothing is open, nothing is asked for any more."""
    s = stop(s, fx, *sorted(s.timers))
    if failure is not None:
        failure = failure._replace(attempts=s.attempt)
    fx.append(Finish(outcome, failure))
    return s._replace(mode="done", known=())


def fail(s: State, fx: Effects, failure: Failure) -> State:
    """End with a failure; unless the settling event is on its way to the disk, then the journal's answer alone decides."""
    if s.over:
        return await_the_end(s, fx)
    fx.append(Close())
    return finish(s, fx, failure=failure)


def await_the_end(s: State, fx: Effects) -> State:
    """Only the journal is awaited: nothing is left to reconnect for, and no refusal counts any more."""
    fx.append(Close())
    s = stop(s, fx, *sorted(s.timers))
    return s._replace(mode="ending", reading=min(s.reading, 1))


def doubts(s: State, fx: Effects, sentence: str) -> State:
    """Say what this server leaves unproven, once."""
    if sentence in s.doubted:
        return s
    fx.append(Notice("unproven", sentence))
    return s._replace(doubted=s.doubted | {sentence})


def watch_behind(s: State, fx: Effects) -> State:
    """The server has more than the stream shows; a running watch is not begun again."""
    return s if "behind" in s.timers else start(s, fx, "behind", BEHIND_LIMIT)


def end_by_status(s: State, fx: Effects, outcome: Outcome) -> State:
    """The run has ended, and only the status says so: make that durable, then show it."""
    s = await_the_end(s, fx)
    fx.append(CommitOutcome(s.committed, outcome))
    return s


def failure_of(refusal: Refusal) -> Failure:
    """Name the failure of a refusal that no repetition can mend."""
    code = {
        Why.UNAUTHENTICATED: "not_authorized",
        Why.FORBIDDEN: "not_authorized",
        Why.NOT_FOUND: "not_found",
        Why.FOREIGN: "remote_protocol_error",
        Why.OVERSIZE: "remote_protocol_error",
        Why.UNSENDABLE: "local_protocol_error",
    }.get(refusal.why, "attach_error")
    return Failure(code, refusal.detail, refusal)
