"""Acting in the native protocol: continuations, operations, sessions, and how long a key holds. Pure functions of `Native`.

Shapes are those of protocol.md, sections 3, 5 and 7: a response is `{action_id, decision, reason?}` for an approval or an
authorization, `{action_id, result}` or `{action_id, error}` for a client tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reattach.core.pause import Pair
from reattach.core.payload import run_id_good
from reattach.model import Operation
from reattach.profiles.base import Listed, Unreadable
from reattach.profiles.native_values import json_object, maybe, quoted, status_word, stored_text

_WORDS = ("pending", "committed", "failed", "unknown")


def continuation(run_id: str, answers: Sequence[Pair]) -> dict[str, Any]:
    """Return the body of the create that answers a paused run."""
    return {"continues": run_id, "responses": [_response(pair) for pair in answers]}


def _response(pair: Pair) -> dict[str, Any]:
    action, answer = pair
    told: dict[str, Any] = {"action_id": action.id}
    if answer.decision is None:
        return told | {"result": answer.value}
    if action.kind == "client_tool":
        return told | {"error": {"code": "rejected", "message": answer.reason}}
    return told | {"decision": answer.decision} | ({"reason": answer.reason} if answer.reason else {})


def retention_told(body: bytes) -> float | None:
    """Read a discovery document's `key_retention_ms`, in hours.

    Raises:
        Unreadable: It is no such document.
    """
    try:
        limits = json_object(body.decode("utf-8", "replace")).get("limits")
        told = limits.get("key_retention_ms") if isinstance(limits, dict) else None
    except ValueError as error:
        raise Unreadable(f"what is no discovery document ({quoted(body)})") from error
    return told / 3_600_000 if type(told) is int and 0 <= told < 10**15 else None


def operation_told(operation_id: str, body: bytes) -> Operation:
    """Read an operation. A status word that we do not know is `unknown`.

    Raises:
        Unreadable: It is none, or another one.
    """
    try:
        told = json_object(body.decode("utf-8", "replace"))
        if told.get("id") != operation_id:
            raise ValueError("another operation")
    except ValueError as error:
        raise Unreadable(f"an answer that is no operation ({quoted(body)})") from error
    status = told.get("status")
    reversible, external = told.get("reversible"), told.get("external")
    return Operation(
        id=operation_id,
        tool=maybe(told, "tool"),
        status=status if status in _WORDS else "unknown",
        reversible=reversible if isinstance(reversible, bool) else None,
        run_id=maybe(told, "run_id"),
        result=told.get("result"),
        external=external if isinstance(external, bool) else None,
    )


def session_told(body: bytes) -> tuple[tuple[Listed, ...], str | None]:
    """Read a page of a session's runs, oldest first, and what to ask after next (None: it was the last).

    Raises:
        Unreadable: It is none.
    """
    try:
        told = json_object(body.decode("utf-8", "replace"))
        runs = told.get("runs")
        if not isinstance(runs, list):
            raise ValueError("no runs")
        return tuple(_run(each) for each in runs), maybe(told, "next")
    except ValueError as error:
        raise Unreadable(f"an answer without runs ({quoted(body)})") from error


def _run(told: object) -> Listed:
    if not isinstance(told, dict) or not run_id_good(told.get("id")):
        raise ValueError("a run without its id")
    return Listed(
        told["id"], stored_text(told, "session_id"), status_word(told.get("status")), stored_text(told, "continues")
    )
