"""I27, exits: every state has a way out while no more faults happen. A client that does nothing at all any more is stuck in one.

One that never noticed that its connection was silent is I17's.
"""

from reattach_chaos.checkers.reading import read
from reattach_chaos.checkers.ruling import Invalid, Ruling, ruled
from reattach_chaos.checkers.stillness import behind, held_by_a_stall, quiet_ms
from reattach_chaos.history import History


def check(history: History) -> Ruling:
    """Look for clients that stand still before the end."""
    limit = history.case.converge_ms
    stuck = [late for late in behind(history) if quiet_ms(history, late) >= limit and not held_by_a_stall(late)]
    found = [
        Invalid(
            anomaly="hang",
            sentence=f"the client did nothing for {quiet_ms(history, late):g} ms, and the run was not shown to its end",
            witness=(*(() if late.since is None else (late.since,)), *late.tries[-1:]),
        )
        for late in stuck
    ]
    return ruled(found, len(read(history).logs))
