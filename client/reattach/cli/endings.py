"""Lines of what a run's end leaves open: the actions that wait for an answer, and the effects that are not undone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from reattach.cli import visible
from reattach.model import Operation, Outcome, RequiredAction

_UNDONE = {True: "can be undone", False: "cannot be undone", None: "not known whether it can be undone"}


def waits(outcome: Outcome) -> Iterator[str]:
    """Yield the lines of a paused run: what it waits for, and what to type."""
    yield f"run {outcome.run_id} waits for you:"
    for action in outcome.required_actions:
        yield f"  {described(action)}"
    pending = [action for action in outcome.required_actions if action.resolution is None]
    if pending:
        answers = " ".join(f"{action.id} {_form(action)}" for action in pending)
        yield f"Answer: reattach respond {outcome.run_id} {answers}"


def described(action: RequiredAction) -> str:
    """Return a required action on one line."""
    thread = f" (sub-agent {action.thread})" if action.thread else ""
    until = f", until {action.expires_at:%Y-%m-%d %H:%M:%S} UTC" if action.expires_at else ""
    over = f", {action.resolution}" if action.resolution else ""
    return f"{action.id}  {action.kind} of {action.tool}{thread} {value(action.arguments)}{until}{over}"


def _form(action: RequiredAction) -> str:
    return "JSON" if action.kind == "client_tool" else "approve"


def effects(outcome: Outcome) -> Iterator[str]:
    """Yield a line for each operation: the inventory."""
    for each in outcome.operations:
        outside = ", outside the sandbox" if each.external else ""
        yield f"  {each.tool or 'operation'}  {each.id}  {_standing(each)}, {_UNDONE[each.reversible]}{outside}"


def _standing(operation: Operation) -> str:
    return "in doubt: ask the one who did it" if operation.status == "unknown" else operation.status


def value(told: Any) -> str:
    """Return a JSON value on one line, shortened."""
    return visible.line(json.dumps(told, ensure_ascii=False), 400)
