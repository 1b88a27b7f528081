"""The client mutants: a small right client, and thirteen that are wrong in one decision each. They prove the checkers.

    python -m reattach_chaos.mutants end-of-stream          # a client under test, by the contract of cases/README.md

What each does wrong, and how a run of `reattach chaos` finds it, is told in the room's README.

A class is loaded when it is asked for: `client_of("by-text")`.
"""

import importlib

from reattach_chaos.mutants.small import SmallClient

KILLED_BY: dict[str, frozenset[str]] = {
    "right": frozenset(),
    "deliver-first": frozenset({"I4"}),
    "half-event": frozenset({"I6"}),
    "from-received": frozenset({"I2", "I5"}),
    "new-key": frozenset({"I8"}),
    "end-of-stream": frozenset({"I11"}),
    "by-text": frozenset({"I1"}),
    "reset-on-200": frozenset({"I14"}),
    "retry-gone": frozenset({"I15"}),
    "after-end": frozenset({"I16"}),
    "hasty": frozenset({"I17"}),
    "silent-restart": frozenset({"I18"}),
    "swallow-gap": frozenset({"I1"}),
    "two-appliers": frozenset({"I2"}),
}
"""Mutant → the laws of which at least one must find it, and no other."""

_HOME = {
    "right": ("small", "SmallClient"),
    "deliver-first": ("deliver_before_commit", "DeliverBeforeCommit"),
    "half-event": ("half_event_cursor", "HalfEventCursor"),
    "from-received": ("resume_from_received", "ResumeFromReceived"),
    "new-key": ("new_key_per_retry", "NewKeyPerRetry"),
    "end-of-stream": ("end_of_stream_is_the_end", "EndOfStreamIsTheEnd"),
    "by-text": ("dedupe_by_text", "DedupeByText"),
    "reset-on-200": ("reset_on_200", "ResetOn200"),
    "retry-gone": ("retry_gone", "RetryGone"),
    "after-end": ("reattach_after_end", "ReattachAfterEnd"),
    "hasty": ("hasty_read_limit", "HastyReadLimit"),
    "silent-restart": ("silent_restart", "SilentRestart"),
    "swallow-gap": ("swallow_gap", "SwallowGap"),
    "two-appliers": ("two_appliers", "TwoAppliers"),
}


def client_of(mutant: str) -> type[SmallClient]:
    """Return a mutant's class.

    Raises:
        KeyError: There is none of this name.
    """
    module, name = _HOME[mutant]
    found: type[SmallClient] = getattr(importlib.import_module(f"reattach_chaos.mutants.{module}"), name)
    return found


__all__ = ["KILLED_BY", "client_of", "SmallClient"]
