"""Polling: what an answer of the slow status read implies. It runs while the stream looks healthy, and never finishes early.

It finds the end whose event never came, the half-open connection, the path that buffers and the log that moved on
(contract.md, promise 7). An unknown status word, an error or an older answer implies nothing.
"""

from __future__ import annotations

from enum import Enum

from reattach.core.messages import Mark, StatusRead


class Implication(Enum):
    """What a status says about a subscription."""

    NOTHING = "nothing"
    OTHER_EPOCH = "other epoch"
    FINISHED = "finished"
    BEHIND = "behind"
    SETTLED_UNCOMPARABLE = "settled, but its position cannot be compared"


def implication(read: StatusRead, admitted: Mark, committed: Mark) -> Implication:
    """Judge one status answer.

    Args:
        read: The answer. `head` None: the vendor names no newest position.
        admitted: The newest admitted place; events the server has above it are on their way or held back.
        committed: The newest durable place. Only what is durable may be the end: admitted events can still be lost with us.
    """
    if read.epoch is not None and admitted.epoch is not None and read.epoch != admitted.epoch:
        return Implication.OTHER_EPOCH
    settled = read.status.settled and read.outcome is not None
    if read.head is None:
        return Implication.SETTLED_UNCOMPARABLE if settled else Implication.NOTHING
    if settled and read.head <= committed.sequence:
        return Implication.FINISHED
    return Implication.BEHIND if read.head > admitted.sequence else Implication.NOTHING
