"""Admission: one event against one position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.core.scripts import bare, event, mark
from reattach.core.admission import Verdict, admit, leading
from reattach.core.messages import UNSTATED, Known, Mark

KNOWN: Known = tuple((number, f"a{number}", f"a{number}".encode()) for number in (3, 4, 5))
AT_5 = mark(5)


def judged(arrival: object, admitted: Mark = AT_5, known: Known = KNOWN, *, contiguous: bool = True) -> Verdict:
    return admit(arrival, admitted, known, contiguous=contiguous)  # type: ignore[arg-type]  # parametrized


def test_after_five_comes_six() -> None:
    """The cursor is exclusive."""
    assert judged(event(6)) is Verdict.NEXT


@pytest.mark.parametrize("sequence", [1, 2, 3, 4, 5])
def test_what_was_admitted_is_a_duplicate(sequence: int) -> None:
    """The boundary itself too; older than the window by position alone."""
    assert judged(event(sequence)) is Verdict.DUPLICATE


def test_a_number_that_was_left_out_below_us_is_old() -> None:
    """Where numbers have holes by promise: it is at or below what was admitted, so it is not the next."""
    known: Known = ((2, "a2", b"a2"), (5, "a5", b"a5"))
    assert judged(event(4), AT_5, known, contiguous=False) is Verdict.DUPLICATE


def test_the_same_event_with_another_payload_is_a_conflict() -> None:
    """Never dropped in silence."""
    assert judged(event(4, text="other")) is Verdict.CONFLICT


def test_another_event_under_a_known_number_is_another_log() -> None:
    """Numbers are compared only where the identity agrees."""
    assert judged(event(4, tag="b")) is Verdict.DIVERGED


def test_equal_text_under_another_id_is_another_event() -> None:
    """Text is never identity."""
    twin = event(6)._replace(digest=b"a5", text="same")
    assert judged(twin) is Verdict.NEXT


def test_another_predecessor_is_another_log() -> None:
    """The next number after another event than ours."""
    assert judged(event(6, prev="b5")) is Verdict.DIVERGED


def test_a_predecessor_of_a_first_event_is_another_log() -> None:
    """Before the first there is none."""
    assert judged(event(1, prev="a0"), Mark(), ()) is Verdict.DIVERGED
    assert judged(event(1), Mark(), ()) is Verdict.NEXT


def test_an_unstated_predecessor_proves_nothing() -> None:
    """Neither does one that we have no id for."""
    assert judged(event(6, prev=UNSTATED)) is Verdict.NEXT
    assert judged(event(6, prev="x"), AT_5._replace(id=None)) is Verdict.NEXT


def test_a_hole_is_seen_only_where_numbers_have_none() -> None:
    """A profile that promises no contiguous numbers shows none."""
    assert judged(event(7)) is Verdict.HOLE
    assert judged(event(7, prev="a5"), contiguous=False) is Verdict.NEXT


def test_epochs_are_compared_before_numbers() -> None:
    """Seven of a recreated log is not after five of the lost one."""
    assert judged(event(6, epoch="e2")) is Verdict.OTHER_EPOCH
    assert judged(event(2, epoch="e2")) is Verdict.OTHER_EPOCH
    assert judged(event(1, epoch="e2"), Mark(), ()) is Verdict.NEXT


def test_without_numbers_identity_decides() -> None:
    """Known with this payload, known with another, unknown."""
    known: Known = ((None, "x", b"a1"), (None, "y", b"other"))
    assert judged(bare("x"), Mark(2, cursor="y"), known) is Verdict.DUPLICATE
    assert judged(bare("y"), Mark(2, cursor="y"), known) is Verdict.CONFLICT
    assert judged(bare("z"), Mark(2, cursor="y"), known) is Verdict.NEXT


@given(st.lists(st.integers(1, 12), max_size=40))
def test_any_order_of_a_log_yields_its_prefix_once(numbers: list[int]) -> None:
    """Whatever is repeated or left out, admitted is 1, 2, 3, … and nothing else."""
    at, known, admitted = Mark(), (), []
    for number in numbers:
        if admit(event(number), at, known, contiguous=True) is Verdict.NEXT:
            at = mark(number)
            known = (*known, (number, f"a{number}", f"a{number}".encode()))
            admitted.append(number)
    assert admitted == list(range(1, len(admitted) + 1))


CHANGES = st.sampled_from(["none", "number", "previous", "epoch", "no number", "no epoch", "end"])


@given(st.lists(CHANGES, max_size=8), st.integers(0, 3), st.booleans())
def test_what_leads_a_read_is_what_would_be_admitted_one_by_one(changes: list[str], at: int, known: bool) -> None:
    """The quick look at a read says next of nothing that `admit` would not; and of all of a read that is as it should be."""
    arrivals = []
    for number, change in enumerate(changes, at + 1):
        arrival = event(number, end=change == "end")
        match change:
            case "number":
                arrival = arrival._replace(sequence=number + 1)
            case "previous":
                arrival = arrival._replace(prev_id="b")
            case "epoch":
                arrival = arrival._replace(epoch="e2")
            case "no number":
                arrival = arrival._replace(sequence=None)
            case "no epoch":
                arrival = arrival._replace(epoch=None)
        arrivals.append(arrival)
    admitted = mark(at) if known else Mark()
    count = leading(arrivals, admitted)
    for arrival in arrivals[:count]:
        assert admit(arrival, admitted, (), contiguous=True) is Verdict.NEXT
        admitted = Mark(admitted.position + 1, arrival.epoch, arrival.sequence or 0, arrival.id, arrival.cursor)
    ends = [place for place, change in enumerate(changes, 1) if change == "end"]
    assert not ends or count <= ends[0], "nothing follows a settling event"
    if known and at and set(changes) <= {"none"}:
        assert count == len(changes)
