"""Polling: what a status answer implies."""

from __future__ import annotations

import pytest

from client.core.scripts import OUTCOME, mark
from reattach.core.messages import Mark, StatusRead
from reattach.core.polling import Implication, implication
from reattach.model import Status

ADMITTED, COMMITTED = mark(5), mark(4)


def judged(status: Status, head: int | None, *, epoch: str | None = "e1", admitted: Mark = ADMITTED) -> Implication:
    read = StatusRead(0, 1, epoch, head, status, OUTCOME if status.settled else None)
    return implication(read, admitted, COMMITTED)


def test_settled_at_what_is_committed_is_the_end() -> None:
    """The end whose event never came."""
    assert judged(Status.COMPLETED, 4) is Implication.FINISHED
    assert judged(Status.REQUIRES_ACTION, 3) is Implication.FINISHED


def test_settled_above_what_is_committed_is_not_the_end() -> None:
    """What is only admitted can still be lost with us."""
    assert judged(Status.FAILED, 5) is Implication.NOTHING
    assert judged(Status.FAILED, 6) is Implication.BEHIND


@pytest.mark.parametrize("status", [Status.RUNNING, Status.QUEUED, Status.UNKNOWN])
def test_a_status_that_is_not_settled_never_ends(status: Status) -> None:
    """An unknown word least of all."""
    assert judged(status, 4) is Implication.NOTHING
    assert judged(status, 6) is Implication.BEHIND
    assert judged(status, None) is Implication.NOTHING


def test_another_epoch_comes_before_everything() -> None:
    """Its numbers say nothing about ours."""
    assert judged(Status.COMPLETED, 1, epoch="e2") is Implication.OTHER_EPOCH
    assert judged(Status.COMPLETED, 4, epoch=None) is Implication.FINISHED
    assert judged(Status.RUNNING, 9, epoch="e2", admitted=Mark()) is Implication.BEHIND


def test_settled_without_a_position_needs_another_proof() -> None:
    """Where positions cannot be compared the end of a later attach decides."""
    assert judged(Status.COMPLETED, None) is Implication.SETTLED_UNCOMPARABLE


def test_settled_without_an_outcome_is_no_evidence() -> None:
    """A word alone ends nothing."""
    assert implication(StatusRead(0, 1, "e1", 4, Status.COMPLETED, None), ADMITTED, COMMITTED) is Implication.NOTHING
