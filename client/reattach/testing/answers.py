"""Answers that a test scripts: the head of a stream with its body, or the whole of a finite call. Values, no behaviour."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reattach.testing import frames, socket_frames
from reattach.testing.body import Body


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAnswer:
    """What becomes of one request for a stream.

    Attributes:
        status: The HTTP status.
        headers: Names in lower case.
        body: What comes after the head.
        delay: Seconds until the head; None: it never comes.
        lost: The connection breaks instead, with these words.
        definite: Nothing of the request left the machine.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: dict(frames.STREAM_HEADERS))
    body: Body = field(default_factory=Body)
    delay: float | None = 0.0
    lost: str | None = None
    definite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """What becomes of one finite call; see `StreamAnswer`."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: dict(frames.JSON_HEADERS))
    body: bytes = b""
    delay: float | None = 0.0
    lost: str | None = None
    definite: bool = False


def told(value: Any, status: int = 200, **rest: Any) -> CallAnswer:
    """Return a JSON answer."""
    return CallAnswer(status=status, body=frames.compact(value).encode(), **rest)


def refused(status: int, code: str | None = None, *, retry_after: float | None = None, **members: Any) -> CallAnswer:
    """Return a refusal with a problem of this code, or with an empty body where there is none.

    Args:
        status: The HTTP status.
        code: The problem's code.
        retry_after: Seconds that the server asks for.
        members: Further members of the problem.
    """
    headers = dict(frames.PROBLEM_HEADERS if code is not None else {})
    if retry_after is not None:
        headers["retry-after"] = f"{retry_after:g}"
    body = b"" if code is None else frames.compact(frames.problem_json(status, code, **members)).encode()
    return CallAnswer(status=status, headers=headers, body=body)


def as_stream(answer: CallAnswer) -> StreamAnswer:
    """Return a finite answer in place of a stream: a refusal of an attach."""
    return StreamAnswer(
        status=answer.status,
        headers=answer.headers,
        body=Body().send(answer.body).fin(),
        delay=answer.delay,
        lost=answer.lost,
        definite=answer.definite,
    )


def as_socket(answer: CallAnswer) -> StreamAnswer:
    """Return a refusal of an attach as a socket says it: the message and the close; without a code the upgrade is refused."""
    code = "run_not_found" if answer.status == 404 else json.loads(answer.body)["code"] if answer.body else None
    if code is None:
        return as_stream(answer)
    wait = answer.headers.get("retry-after")
    members = {
        name: value
        for name, value in json.loads(answer.body or b"{}").items()
        if name not in ("type", "code", "status")
    }
    if wait is not None:
        members["retry_after_ms"] = int(float(wait) * 1000)
    kind = "error" if answer.status == 401 else "resume_rejected"
    told = socket_frames.rejected(answer.status, code, kind=kind, **members)
    body = Body().send(told, socket_frames.close(1008 if answer.status == 401 else 1000)).fin()
    return StreamAnswer(
        status=101, headers={}, body=body, delay=answer.delay, lost=answer.lost, definite=answer.definite
    )
