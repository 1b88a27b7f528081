"""I20, resources: after the case the client holds no more sockets, tasks and memory than before, and no task died unheard."""

from reattach_chaos.checkers.ruling import Invalid, Ruling, Valid, ruled
from reattach_chaos.history import History, Resources

MEMORY_BYTES = 64 * 1024 * 1024
"""So much more memory is an allocator's habit, not a leak."""


def check(history: History) -> Ruling:
    """Compare what was held before and after."""
    before = next((record for record in history.of(Resources) if record.when == "before"), None)
    after = next((record for record in reversed(history.of(Resources)) if record.when == "after"), None)
    if before is None or after is None:
        return Valid()
    grown = [
        f"{getattr(after, name) - getattr(before, name)} more {words}"
        for name, words, allowed in (
            ("sockets", "sockets", 0),
            ("tasks", "tasks", 0),
            ("memory_bytes", "bytes of memory", MEMORY_BYTES),
            ("task_errors", "task errors that nobody caught", 0),
        )
        if getattr(after, name) - getattr(before, name) > allowed
    ]
    found = [
        Invalid(anomaly="leak", sentence=f"the client holds {each} than before", witness=(before, after))
        for each in grown
    ]
    return ruled(found, 4)
