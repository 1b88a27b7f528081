"""The machine of one subscription: one step function over one transition table.

    step(state, input) -> (state, effects in order)

The rows are in `rows_*.py`, joined here in the order in which they are tried. Stale inputs of a connection that was closed never
reach this file: the runtime numbers connections. Answers asked for before the last boundary was adopted are dropped here.

Explored exhaustively by tests/client/core/test_exploration.py (fault scenes, no violation; every rule dropped is caught), and
tests/client/core/test_table.py shows for every row that leaving it out is noticed.
"""

from __future__ import annotations

from reattach.core import rows_journal, rows_net, rows_path, rows_poll, rows_resync, rows_stream
from reattach.core.messages import Committed, Effect, Elapsed, Input, StatusFailed, StatusRead, Why
from reattach.core.moves import Effects, ask_status
from reattach.core.state import State
from reattach.core.table import Table

TABLE = Table(
    [
        *rows_poll.ROWS,
        *rows_path.ROWS,
        *rows_stream.ROWS,
        *rows_resync.ROWS,
        *rows_journal.ROWS,
        *rows_net.ROWS,
    ]
)


def step(state: State, given: Input, table: Table = TABLE) -> tuple[State, tuple[Effect, ...]]:
    """Take one fact; return the new state and what must be done, in order. Never waits, never raises for the world's facts.

    Args:
        state: The subscription; it is not changed.
        given: The fact.
        table: The rows; tests leave some out.
    """
    if state.mode == "done":
        return state, ()
    effects: Effects = []
    if isinstance(given, StatusRead | StatusFailed):
        state, current = _answered(state, given, effects)
        if not current:
            return state, tuple(effects)
    elif isinstance(given, Elapsed):
        if given.timer not in state.timers:
            return state, ()
        state = state._replace(timers=state.timers - {given.timer})
    elif isinstance(given, Committed):
        state = _settled_commit(state, given)
    for act in table.acts(state.mode, type(given)):
        after = act(state, given, effects)
        if after is not None:
            return after, tuple(effects)
    return state, tuple(effects)


def _answered(s: State, given: StatusRead | StatusFailed, fx: Effects) -> tuple[State, bool]:
    """Count the read as answered; send the one that was asked for meanwhile. False: it was asked in an earlier era."""
    # One that failed for now is asked again by the slow poll; at once would be sooner than the server may want.
    again = s.reading == 2 and not (isinstance(given, StatusFailed) and given.refusal.why is Why.BUSY)
    s = s._replace(reading=0)
    if again:
        s = ask_status(s, fx)
    return s, given.era == s.era


def _settled_commit(s: State, given: Committed) -> State:
    """A commit is durable: move the watermark. Progress is a newly committed event, and nothing else."""
    s = s._replace(flying=s.flying - 1, committed=given.mark)
    return s._replace(gapping=False) if given.gap else s._replace(backoff=s.backoff.progressed())
