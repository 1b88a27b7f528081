"""The values of the native protocol: words, JSON objects and how they become the client's nouns. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from reattach.core.fold import Replaced
from reattach.core.messages import Why
from reattach.core.payload import encodable, instant
from reattach.model import Evidence, Kind, Message, Operation, Outcome, Problem, RequiredAction, Status, ToolCall

KINDS: dict[str, Kind] = {
    "message.delta": "text",
    "message.completed": "message",
    "tool.call": "tool_call",
    "tool.result": "tool_result",
    "action.required": "action",
    "action.resolved": "action",
    "run.created": "status",
    "run.started": "status",
    "release.changed": "status",
    "status": "status",
    "run.completed": "end",
    "run.failed": "end",
    "run.cancelled": "end",
    "run.paused": "end",
}
SETTLING: dict[str, Status] = {
    "run.completed": Status.COMPLETED,
    "run.failed": Status.FAILED,
    "run.cancelled": Status.CANCELLED,
    "run.paused": Status.REQUIRES_ACTION,
}
CURSOR = re.compile(r"([A-Za-z0-9_-]{1,64})\.(0|[1-9][0-9]{0,18})\Z")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


json_scan = json.JSONDecoder(parse_constant=_no_constant).scan_once  # type: ignore[attr-defined]  # the C scanner, not in typeshed
"""Return the value that begins at a place of a text, and where it ends; StopIteration: there is none."""


NESTING = 200
"""Deeper payloads are refused: what a parser at the edge of its stack has just read, the journal could not read back."""


def json_object(text: str) -> dict[str, Any]:
    """Return the JSON object of a text.

    Raises:
        ValueError: It is none, or nested more than 200 deep.
    """
    try:
        try:
            value, end = json_scan(text, 0)
        except StopIteration:
            end = -1
        if end != len(text):
            value = json.loads(text, parse_constant=_no_constant)  # white space around it is legal
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if type(value) is not dict:
        raise ValueError("not a JSON object")
    if len(text) > 2 * NESTING and text.count("{") + text.count("[") > NESTING and _deep(value):
        raise ValueError("nested too deeply")
    return value


_space = re.compile(r"[ \t\n\r]*").match


def json_members(text: str) -> dict[str, tuple[Any, str]]:
    """Return the members of a text's JSON object, each with its own text as it came.

    Raises:
        ValueError: It is none, or nested more than 200 deep.
    """
    members: dict[str, tuple[Any, str]] = {}
    try:
        at = _after(text, 0, "{")
        while text[at : at + 1] != "}":
            if members:
                at = _after(text, at, ",")
            name, at = json_scan(text, at)
            if type(name) is not str:
                raise ValueError("a member without a name")
            begin = _after(text, at, ":")
            value, at = json_scan(text, begin)
            members[name] = value, text[begin:at]
            at = _end_of_space(text, at)
    except StopIteration as error:
        raise ValueError("not a JSON object") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _end_of_space(text, at + 1) != len(text):
        raise ValueError("more than a JSON object")
    many = len(text) > 2 * NESTING and text.count("{") + text.count("[") > NESTING
    if many and _deep({name: value for name, (value, _) in members.items()}):
        raise ValueError("nested too deeply")
    return members


def _after(text: str, at: int, mark: str) -> int:
    """Return where the next token begins, past a mark that must be here."""
    at = _end_of_space(text, at)
    if text[at : at + 1] != mark:
        raise ValueError("not a JSON object")
    return _end_of_space(text, at + 1)


def _end_of_space(text: str, at: int) -> int:
    found = _space(text, at)
    return at if found is None else found.end()


def _deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(NESTING):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in (dict, list)
        ]
        if not level:
            return False
    return True


# ------------------------------------------------------------------------------------------------------- values


def by_status(status: int) -> Why:
    """Sort an answer without a code that we know by its HTTP status."""
    if status in (408, 425, 429) or 500 <= status <= 599:
        return Why.BUSY
    if status == 401:
        return Why.UNAUTHENTICATED
    if status == 403:
        return Why.FORBIDDEN
    if status == 404:
        return Why.NOT_FOUND
    if status == 410:
        return Why.EXPIRED
    return Why.OTHER if 400 <= status <= 499 else Why.FOREIGN


def status_word(word: object) -> Status:
    """Return the status of a word; one that we do not know is `unknown`."""
    try:
        return Status(word) if isinstance(word, str) else Status.UNKNOWN
    except ValueError:
        return Status.UNKNOWN


def required_text(value: Mapping[str, Any], name: str) -> str:
    """Return a member that must be a text, else ValueError."""
    found = value.get(name)
    if not isinstance(found, str) or not found:
        raise ValueError(f"no {name}")
    return found


def stored_text(value: Mapping[str, Any], name: str) -> str | None:
    """Return a member if it is a text that a journal and a path can carry: no half of a surrogate pair."""
    found = maybe(value, name)
    return found if found is None or encodable(found) else None


def maybe(value: Mapping[str, Any], name: str) -> str | None:
    """Return a member if it is a text."""
    found = value.get(name)
    return found if isinstance(found, str) else None


def maybe_int(value: Mapping[str, Any], name: str) -> int | None:
    """Return a member if it is a whole number."""
    found = value.get(name)
    return found if type(found) is int else None


def quoted(body: bytes) -> str:
    """Return the beginning of a body for a message, on one line."""
    text = " ".join(body[:200].decode("utf-8", "replace").split())
    return f'"{text[:60]}…"' if len(text) > 60 else f'"{text}"'


def action(told: Mapping[str, Any]) -> RequiredAction:
    """Return a required action as the protocol tells it."""
    kind = told.get("kind")
    expires = told.get("expires_at")
    return RequiredAction(
        id=str(told.get("id")),
        kind=kind if kind in ("approval", "client_tool", "authorization") else "other",
        tool=maybe(told, "tool"),
        arguments=told.get("arguments"),
        source_event_id=maybe(told, "source_event_id"),
        operation_id=maybe(told, "operation_id"),
        expires_at=instant(expires) if isinstance(expires, str) else None,
        thread=maybe(told, "thread"),
        resolution=maybe(told, "resolution"),
    )


def actions(told: object) -> tuple[RequiredAction, ...]:
    """Return all required actions of a list; odd items are left out."""
    return tuple(action(each) for each in told if isinstance(each, dict)) if isinstance(told, list) else ()


def outcome(run_id: str, status: Status, data: object, evidence: Evidence) -> Outcome:
    """Return the outcome that a settling event's data, or a settled run, tells."""
    told = data if isinstance(data, dict) else {}
    error = told.get("error")
    problem = None
    if isinstance(error, dict):
        problem = Problem(
            code=str(error.get("code") or ""), message=str(error.get("message") or ""), data=error.get("data")
        )
    return Outcome(
        run_id=run_id,
        status=status,
        result=told.get("result"),
        problem=problem,
        required_actions=actions(told.get("required_actions")) if status is Status.REQUIRES_ACTION else (),
        operations=operations(run_id, told.get("operations")),
        release=maybe(told, "release"),
        evidence=evidence,
    )


def operations(run_id: str, told: object) -> tuple[Operation, ...]:
    """Return the inventory of a cancelled run: what took effect, what is in doubt, what cannot be undone."""
    if not isinstance(told, dict):
        return ()
    found: list[Operation] = []
    listed = told.get("external")
    outside = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else None
    for name, status, reversible in (
        ("known", "committed", True),
        ("unknown", "unknown", None),
        ("irreversible", "committed", False),
    ):
        ids = told.get(name)
        if isinstance(ids, list):
            found.extend(
                Operation(
                    id=each,
                    status=status,  # type: ignore[arg-type]  # the words above
                    reversible=reversible,
                    run_id=run_id,
                    external=None if outside is None else each in outside,
                )
                for each in ids
                if isinstance(each, str)
            )
    named = {each.id for each in found}
    found.extend(
        Operation(id=each, run_id=run_id, external=True) for each in outside or () if each not in named
    )  # nothing said of it: in doubt
    return tuple(found)


def _objects(state: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects of a member that should be a list of them: it is in the journal for good, whatever a server put there."""
    told = state.get(name)
    return [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []


def replaced(state: Mapping[str, Any]) -> Replaced:
    """Return what a snapshot's state makes of the view."""
    messages, calls = _objects(state, "messages"), _objects(state, "tool_calls")
    return Replaced(
        status_word(state.get("status")),
        tuple(
            Message(
                id=str(each.get("message_id")),
                role=str(each.get("role") or "assistant"),
                text=str(each.get("text") or ""),
                complete=bool(each.get("completed")),
            )
            for each in messages
        ),
        tuple(
            ToolCall(
                id=str(each.get("call_id")),
                name=str(each.get("tool") or ""),
                arguments=each.get("arguments"),
                result={"error": each["error"]} if each.get("error") is not None else each.get("result"),
                complete="result" in each or each.get("error") is not None,
                operation_id=maybe(each, "operation_id"),
            )
            for each in calls
        ),
        actions(state.get("required_actions")),
    )
