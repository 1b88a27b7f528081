"""Refusals: every error of this server as a value, and as `application/problem+json` (RFC 9457).

`CODES` gives each code its status, once; a refusal with headers or members of its own, or raised in several places, has
a function here. The order in which they are found is `checks.py`'s and the faces'. No refusal ever creates or changes
anything.

Where the rules come from: PROTOCOL, section 4, Refusals. Checked by tests/mockserver/test_refusals.py.
"""

import http
import json
from collections.abc import Mapping
from typing import Any

from reattach_mockserver.logs.base import RunRecord

_DETAIL = 500  # characters; what was sent is quoted, and may be as long as a body

CODES = {
    "unauthenticated": 401,
    "forbidden": 403,
    "run_not_found": 404,
    "cursor_malformed": 400,
    "cursor_foreign": 400,
    "epoch_changed": 410,
    "cursor_expired": 410,
    "cursor_ahead": 409,
    "invalid_request": 400,
    "idempotency_key_missing": 400,
    "idempotency_conflict": 422,
    "idempotency_in_flight": 409,
    "session_busy": 409,
    "not_paused": 409,
    "actions_unanswered": 422,
    "action_unknown": 422,
    "action_expired": 409,
    "action_resolved": 409,
    "approval_stale": 409,
    "operation_not_found": 404,
    "event_too_large": 413,
    "not_found": 404,
    "session_not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "not_acceptable": 406,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "headers_too_large": 431,
    "overloaded": 503,
    "internal": 500,
}


class Refusal(Exception):
    """An answer that is an error. `members` go into the problem beside code, status, title and detail."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.status = CODES[code] if status is None else status
        self.headers = dict(headers or {})
        self.members = members

    def body(self) -> bytes:
        """Return the problem document."""
        problem = {
            "type": "about:blank",
            "title": http.HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail if len(self.detail) <= _DETAIL else self.detail[:_DETAIL] + "…",
            **self.members,
        }
        return json.dumps(problem).encode()

    def message(self) -> bytes:
        """Return the problem as a whole HTTP/1.1 answer that ends its connection, for a host that has no application left."""
        body = self.body()
        lines = [
            f"HTTP/1.1 {self.status} {http.HTTPStatus(self.status).phrase}",
            "content-type: application/problem+json",
            "cache-control: no-store",
            f"content-length: {len(body)}",
            "connection: close",
            *(f"{name.lower()}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def overloaded(detail: str, status: int = 503, retry_after: int = 1) -> Refusal:
    """Refuse work for now; `retry_after` in seconds."""
    return Refusal("overloaded", detail, status=status, headers={"Retry-After": str(retry_after)})


def unauthenticated(detail: str) -> Refusal:
    """Refuse a call without a good token."""
    return Refusal("unauthenticated", detail, headers={"WWW-Authenticate": "Bearer"})


def invalid_request(detail: str) -> Refusal:
    """Refuse what is not a request of this protocol."""
    return Refusal("invalid_request", detail)


def run_not_found(run_id: str) -> Refusal:
    """Refuse a run that is unknown, or another principal's: the caller cannot tell which."""
    return Refusal("run_not_found", f"there is no run {run_id!r}")


def epoch_changed(run: RunRecord, snapshot: str) -> Refusal:
    """Refuse a cursor of another incarnation of the log; `snapshot` is the path of the way out."""
    return Refusal(
        "epoch_changed",
        f"the log of this run is now of epoch {run.epoch!r}; positions of another epoch mean nothing in it",
        epoch=run.epoch,
        snapshot=snapshot,
    )


def cursor_expired(run: RunRecord, snapshot: str) -> Refusal:
    """Refuse a cursor whose next events are no longer kept."""
    return Refusal(
        "cursor_expired",
        f"events before {run.first_sequence} are no longer kept",
        first_sequence=run.first_sequence,
        last_sequence=run.last_sequence,
        snapshot=snapshot,
    )


def cursor_ahead(run: RunRecord) -> Refusal:
    """Refuse a cursor beyond the end of the log."""
    return Refusal("cursor_ahead", f"the log ends at {run.last_sequence}", last_sequence=run.last_sequence)
