"""Bytes of the native protocol for tests: what a good server sends on a stream, and its JSON answers.

Written from the protocol, not from the client's profile, and without any state. An event stays the same bytes however often it
is made, as on a real server. Types and payloads are the caller's; the defaults tell a small story.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

RUN = "run_1"
EPOCH = "e1"
TIME = "2026-01-01T00:00:00.000Z"
HEARTBEAT = b":\n"
"""A comment line without an empty one behind it."""
STREAM_HEADERS: Mapping[str, str] = {"content-type": "text/event-stream"}
JSON_HEADERS: Mapping[str, str] = {"content-type": "application/json"}
PROBLEM_HEADERS: Mapping[str, str] = {"content-type": "application/problem+json"}


def compact(value: Any) -> str:
    """Return a value as the JSON text that travels: one line, no spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def event_id(sequence: int, epoch: str = EPOCH) -> str | None:
    """Return the id of the event of a number, None before the first."""
    return f"evt_{epoch}_{sequence}" if sequence else None


def event_json(
    sequence: int,
    *,
    run_id: str = RUN,
    epoch: str = EPOCH,
    type: str = "message.delta",
    data: Mapping[str, Any] | None = None,
    **other: Any,
) -> str:
    """Return the JSON text of an event.

    Args:
        sequence: Its number, from 1.
        run_id: Its run.
        epoch: Only for the ids that are made up.
        type: Its type.
        data: Its payload; by default one more word.
        other: Members instead of those made up here, such as `id` or `prev_id`.
    """
    payload = {"message_id": "m1", "index": sequence - 1, "text": f"word {sequence} "} if data is None else data
    told = {
        "id": event_id(sequence, epoch),
        "prev_id": event_id(sequence - 1, epoch),
        "run_id": run_id,
        "sequence": sequence,
        "type": type,
        "time": TIME,
        "data": payload,
    }
    return compact(told | other)


def block(text: str, *, id: str | None = None, event: str | None = None, retry: int | None = None) -> bytes:
    """Return one block of an event stream; `retry` in milliseconds."""
    lines = [] if retry is None else [f"retry: {retry}"]
    lines += [] if id is None else [f"id: {id}"]
    lines += [] if event is None else [f"event: {event}"]
    return "".join(f"{line}\n" for line in [*lines, f"data: {text}", ""]).encode()


def event(sequence: int, *, epoch: str = EPOCH, type: str = "message.delta", **rest: Any) -> bytes:
    """Return an event as its block; see `event_json`."""
    return block(event_json(sequence, epoch=epoch, type=type, **rest), id=f"{epoch}.{sequence}", event=type)


def end(sequence: int, *, result: Any = None, **rest: Any) -> bytes:
    """Return the settling event of a completed run as its block."""
    return event(sequence, type="run.completed", data={"result": result}, **rest)


def attached(
    after: int = 0,
    *,
    run_id: str = RUN,
    epoch: str = EPOCH,
    last: int | None = None,
    heartbeat_ms: int = 15_000,
    retry: int | None = 1000,
    **other: Any,
) -> bytes:
    """Return the block with which a stream begins.

    Args:
        after: The sequence that the stream goes on after.
        run_id: The run.
        epoch: The log's.
        last: The newest sequence that the server has; by default `after`.
        heartbeat_ms: How often a byte comes at least, in milliseconds.
        retry: The wish for reconnects in milliseconds, None for none.
        other: Members instead of those made up here, such as `cursor_id`.
    """
    told = {
        "protocol": 1,
        "run_id": run_id,
        "epoch": epoch,
        "cursor": f"{epoch}.{after}",
        "cursor_id": event_id(after, epoch),
        "last_sequence": after if last is None else last,
        "status": "running",
        "heartbeat_ms": heartbeat_ms,
    }
    return block(compact(told | other), event="stream.attached", retry=retry)


def closing(reason: str, *, retry: int | None = 1000) -> bytes:
    """Return the last block of a stream that the server closes between two events."""
    return block(compact({"reason": reason}), event="stream.closing", retry=retry)


def run_json(
    *, run_id: str = RUN, status: str = "running", epoch: str = EPOCH, last: int = 1, **other: Any
) -> dict[str, Any]:
    """Return a run as create and status reads answer it; `last` is its newest sequence."""
    return {
        "id": run_id,
        "session_id": "ses_1",
        "status": status,
        "epoch": epoch,
        "first_sequence": 1,
        "last_sequence": last,
        "cursor": f"{epoch}.{last}",
        "created_at": TIME,
    } | other


def snapshot_json(sequence: int, *, epoch: str = EPOCH, status: str = "running", **other: Any) -> dict[str, Any]:
    """Return a snapshot's answer, valid at a sequence."""
    return {
        "cursor": f"{epoch}.{sequence}",
        "cursor_id": event_id(sequence, epoch),
        "epoch": epoch,
        "sequence": sequence,
        "status": status,
        "messages": [],
        "tool_calls": [],
        "required_actions": [],
    } | other


def problem_json(status: int, code: str, **other: Any) -> dict[str, Any]:
    """Return the body of a refusal."""
    return {
        "type": "about:blank",
        "title": code,
        "status": status,
        "code": code,
        "detail": f"{code} (scripted)",
    } | other
