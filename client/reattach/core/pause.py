"""Pause: the whole set of required actions, answered by id. Pure.

A pause is left by one continuation that answers everything that is pending (protocol.md, 5), so an answer that is missing, doubled,
unknown or of the wrong kind is found before anything is sent. Answers come back in the order of their actions, whatever order they
were given in: the same answers are the same request, with the same digest, in this process and the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reattach.model import Answer, RequiredAction


class Unanswered(NamedTuple):
    """Actions that have no answer."""

    missing: tuple[RequiredAction, ...]


class Unfit(NamedTuple):
    """What no server could take; `detail` is a sentence without its end."""

    detail: str


Pair = tuple[RequiredAction, Answer]


def paired(actions: Sequence[RequiredAction], answers: Sequence[Answer]) -> tuple[Pair, ...] | Unanswered | Unfit:
    """Return each action with its answer, or what is wrong with the set."""
    given: dict[str, Answer] = {}
    known = {action.id for action in actions}
    for answer in answers:
        if answer.action_id not in known:
            return Unfit(f"there is no action {answer.action_id!r}")
        if answer.action_id in given:
            return Unfit(f"action {answer.action_id!r} has two answers")
        given[answer.action_id] = answer
    for action in actions:
        wrong = _unfit(action, given[action.id]) if action.id in given else None
        if wrong is not None:
            return Unfit(wrong)
    missing = tuple(action for action in actions if action.id not in given)
    return Unanswered(missing) if missing else tuple((action, given[action.id]) for action in actions)


def _unfit(action: RequiredAction, answer: Answer) -> str | None:
    match action.kind, answer.decision:
        case (("approval" | "authorization"), None):
            return f"action {action.id!r} is an {action.kind}: approve() or reject() answers it"
        case "client_tool", "approve":
            return f"action {action.id!r} asks for a tool's result: answer(value) or reject(reason) answers it"
        case _:
            return None


def pending(actions: Sequence[RequiredAction]) -> bool:
    """Whether anything still waits for an answer, as far as the server told."""
    return any(action.resolution is None for action in actions)
