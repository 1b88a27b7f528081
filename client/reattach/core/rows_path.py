"""Rows of the path between the server and us: what it holds back, what it swallows, and a machine that slept.

When a path is taken for one that buffers is `path.py`'s.
"""

from __future__ import annotations

from reattach.core.backoff import Window
from reattach.core.messages import Elapsed, Woke
from reattach.core.moves import Effects, ask_status, budget, lose
from reattach.core.path import struck
from reattach.core.state import State
from reattach.core.table import ANY, Row, collector

ROWS: list[Row] = []
row = collector(ROWS)


@row(Elapsed, "attaching")
def connect_elapsed(s: State, given: Elapsed, fx: Effects) -> State | None:
    """No answer to the attempt in time. If the status was answered meanwhile, the path may hold the stream's head back."""
    if given.timer != "connect":
        return None
    return lose(struck(s, fx) if s.answered else s, fx, "no answer in time")


@row(Elapsed, "live")
def behind_elapsed(s: State, given: Elapsed, fx: Effects) -> State | None:
    """The server has events that this connection does not bring."""
    return lose(struck(s, fx), fx, "the stream held events back") if given.timer == "behind" else None


@row(Elapsed, *ANY)
def stream_elapsed(s: State, given: Elapsed, fx: Effects) -> State | None:
    """Long polls for long enough: by a stream again. Leaving what works is no failure, and not counted."""
    if given.timer != "stream":
        return None
    s = s._replace(by=s.rules.by)
    if s.mode not in ("attaching", "live"):
        return s
    return lose(s, fx, "trying the stream again", window=Window(0.0, s.rules.policy.retry_floor), accepted=False)


@row(Woke, "attaching", "live", "waiting")
def woke(s: State, given: Woke, fx: Effects) -> State:
    """What is open may be dead and nobody will say so: attach anew, with a new budget, no sooner than the server wanted."""
    s = budget(s._replace(backoff=s.backoff.progressed()), fx, anew=True)
    low = max(0.0, s.floor - given.waited) if s.mode == "waiting" else 0.0
    window = Window(low, low + s.rules.policy.retry_floor)
    return lose(s, fx, "the machine slept", window=window, accepted=False)


@row(Woke, "polling", "resyncing")
def woke_elsewhere(s: State, given: Woke, fx: Effects) -> State:
    """Nothing is open: ask at once, or go on asking, with a new budget."""
    if s.mode == "polling":
        return ask_status(s, fx)
    return budget(s, fx, anew=True) if "budget" in s.timers else s
