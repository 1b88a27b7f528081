"""Admission: is this event the next one, an old one, or proof that something is wrong?

One question, answered from the event, the position already admitted and the newest events behind it. Nothing here waits,
stores, logs or knows a vendor.

Rules and their sources
    * The cursor is exclusive: after 41 comes 42 (contract.md, promise 3).
    * At or below the admitted position it is a duplicate if its identity and payload are the known ones, a conflict if the
      identity is known with another payload, and a diverged log if the number is known with another identity. Text is never
      identity.
    * A predecessor that is not the event we admitted last proves another log under the same numbers (protocol.md, `prev_id`).
    * A hole can be seen only where the profile promises contiguous sequences.

Checked by tests/client/core/test_admission.py and, over whole runs, by the exploration and the property test.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from reattach.core.messages import UNSTATED, Arrival, Identity, Mark


class Verdict(Enum):
    """What an event is to a subscription."""

    NEXT = "next"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    DIVERGED = "diverged"
    HOLE = "hole"
    OTHER_EPOCH = "other epoch"


def admit(arrival: Arrival, admitted: Mark, known: Sequence[Identity], *, contiguous: bool) -> Verdict:
    """Judge one event against the last admitted one.

    Args:
        arrival: The event. `sequence` None: this vendor's positions cannot be compared, identity alone decides.
        admitted: The newest admitted place; `epoch` None until a first event was admitted.
        known: The newest events at or below it.
        contiguous: Whether the profile promises sequences without holes.
    """
    if arrival.epoch is not None and admitted.epoch is not None and arrival.epoch != admitted.epoch:
        return Verdict.OTHER_EPOCH
    sequence = arrival.sequence
    if sequence is None:
        return _by_identity(arrival, known)
    if sequence <= admitted.sequence:
        return _old(arrival, sequence, known)
    if contiguous and sequence != admitted.sequence + 1:
        return Verdict.HOLE
    return Verdict.NEXT if _follows(arrival.prev_id, admitted) else Verdict.DIVERGED


def leading(arrivals: Sequence[Arrival], admitted: Mark) -> int:
    """Return how many events from the front are each the next one beyond doubt: same epoch, next number, known predecessor.

    What `admit` would say of each, for the many events of one read, at a third of the price; it stops at the first that needs a
    second look, and behind a settling event.
    """
    _, epoch, sequence, identity, _ = admitted
    if epoch is None or identity is None:
        return 0
    for count, arrival in enumerate(arrivals):
        sequence += 1
        if arrival.sequence != sequence or arrival.prev_id != identity or arrival.epoch != epoch:
            return count
        identity = arrival.id
        if arrival.outcome is not None:
            return count + 1
    return len(arrivals)


def _follows(prev_id: str | None, admitted: Mark) -> bool:
    if prev_id == UNSTATED:
        return True
    if admitted.sequence == 0:
        return prev_id is None
    return admitted.id is None or prev_id == admitted.id


def _by_identity(arrival: Arrival, known: Sequence[Identity]) -> Verdict:
    for _, dedupe, digest in reversed(known):
        if dedupe == arrival.dedupe:
            return Verdict.DUPLICATE if digest == arrival.digest else Verdict.CONFLICT
    return Verdict.NEXT


def _old(arrival: Arrival, sequence: int, known: Sequence[Identity]) -> Verdict:
    for number, dedupe, digest in reversed(known):
        if number == sequence:
            if dedupe != arrival.dedupe:
                return Verdict.DIVERGED
            return Verdict.DUPLICATE if digest == arrival.digest else Verdict.CONFLICT
        if number is not None and number < sequence:
            break
    return Verdict.DUPLICATE  # older than the window: by position alone
