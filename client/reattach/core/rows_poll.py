"""Rows of a subscription that keeps nothing open: pages are fetched, or the state is read, when the status has news.

By choice, and for servers that have no stream. Tried before the rows of a stream: what ends a page is the end of no connection.
"""

from __future__ import annotations

from reattach.core.messages import Ended, StatusRead
from reattach.core.moves import WITHHELD, Effects, attach, barren, end_by_status, go_by_status, resync
from reattach.core.polling import Implication
from reattach.core.state import State
from reattach.core.table import Row, collector

ROWS: list[Row] = []
row = collector(ROWS)


@row(Ended, "attaching", "live")
def ended_for_now(s: State, given: Ended, fx: Effects) -> State | None:
    """All pages were read. Where positions cannot be compared, the row of that end comes first."""
    if s.by != "poll" or s.over:
        return None
    if s.settled is not None and s.attempt > s.settled_at and not s.fresh and not s.flying:
        return None
    s = barren(s)
    return resync(s, fx, "hole") if s.withheld >= WITHHELD and not s.flying else go_by_status(s, fx)


def look(s: State, given: StatusRead, said: Implication, fx: Effects) -> State:
    """Fetch what the status has above us; without a log, the state as it is now."""
    if s.flying:
        return s
    news = given.head is None or said is Implication.BEHIND
    if said is Implication.SETTLED_UNCOMPARABLE and s.settled is None:
        # Only what is asked for after this answer is sure to bring all that the run ever wrote.
        s = s._replace(settled=given.outcome, settled_at=s.attempt)
    if s.rules.replays:
        return attach(s, fx) if news else s
    if s.rules.on_gap == "continue":  # the label was given; there is nothing else to fetch
        return s if given.outcome is None else end_by_status(s, fx, given.outcome)
    return resync(s, fx, "no_log") if news else s
