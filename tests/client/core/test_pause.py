"""A pause: the whole set, answered by id, in the order of its actions."""

import itertools

import pytest

from reattach.core.pause import Unanswered, Unfit, paired, pending
from reattach.model import Answer, RequiredAction

APPROVAL = RequiredAction(id="a", kind="approval")
TOOL = RequiredAction(id="t", kind="client_tool")
LOGIN = RequiredAction(id="l", kind="authorization")
OTHER = RequiredAction(id="o", kind="other")
ALL = (APPROVAL, TOOL, LOGIN, OTHER)
GOOD = (APPROVAL.approve(), TOOL.answer(1), LOGIN.reject("no"), OTHER.answer(None))


def test_answers_in_any_order_are_the_same_pairs() -> None:
    """So that they make the same request, with the same digest."""
    expected = tuple(zip(ALL, GOOD, strict=True))
    for given in itertools.permutations(GOOD):
        assert paired(ALL, given) == expected


def test_every_subset_names_exactly_what_is_missing() -> None:
    for size in range(len(GOOD)):
        for given in itertools.combinations(GOOD, size):
            left = {answer.action_id for answer in given}
            assert paired(ALL, given) == Unanswered(tuple(action for action in ALL if action.id not in left))


def test_nothing_to_answer_is_answered_by_nothing() -> None:
    assert paired((), ()) == ()


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ((*GOOD, Answer(action_id="x")), "no action 'x'"),
        ((*GOOD, APPROVAL.reject()), "'a' has two answers"),
        ((APPROVAL.answer(True),), "'a' is an approval: approve() or reject()"),
        ((LOGIN.answer(True),), "'l' is an authorization"),
        ((TOOL.approve(),), "'t' asks for a tool's result"),
    ],
)
def test_an_answer_that_no_server_could_take_is_told_first(answers: tuple[Answer, ...], told: str) -> None:
    """Before what is missing: it would be wrong however many are added."""
    found = paired(ALL, answers)
    assert isinstance(found, Unfit)
    assert told in found.detail


@pytest.mark.parametrize("answer", [TOOL.reject("no"), TOOL.answer(None)])
def test_a_tool_may_be_refused_or_answer_nothing(answer: Answer) -> None:
    assert paired((TOOL,), (answer,)) == ((TOOL, answer),)


@pytest.mark.parametrize("answer", [OTHER.approve(), OTHER.reject(), OTHER.answer(1)])
def test_a_kind_that_we_do_not_know_takes_any_answer(answer: Answer) -> None:
    """The server judges it."""
    assert paired((OTHER,), (answer,)) == ((OTHER, answer),)


def test_a_pause_is_pending_while_one_action_has_no_resolution() -> None:
    over = RequiredAction(id="x", kind="approval", resolution="approved")
    assert pending((APPROVAL, over))
    assert not pending((over,))
    assert not pending(())
