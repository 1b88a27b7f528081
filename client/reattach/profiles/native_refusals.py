"""The native protocol's refusals: an HTTP answer that is not the good one, sorted into the classes that the core knows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reattach.core.messages import Refusal, Why
from reattach.profiles.hints import retry_after
from reattach.profiles.native_values import by_status, json_object, maybe, maybe_int, quoted, stored_text

CODES: dict[str, Why] = {
    "cursor_malformed": Why.CURSOR,
    "cursor_foreign": Why.CURSOR,
    "cursor_ahead": Why.AHEAD,
    "cursor_expired": Why.EXPIRED,
    "epoch_changed": Why.EPOCH,
    "run_not_found": Why.NOT_FOUND,
    "idempotency_in_flight": Why.BUSY,
    "overloaded": Why.BUSY,
}


def refusal_of(status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
    """Sort by the problem's code where there is one, else by the status."""
    problem: dict[str, Any] = {}
    if "json" in headers.get("content-type", ""):
        try:
            problem = json_object(body.decode("utf-8", "replace"))
        except ValueError:
            problem = {}
    code = problem.get("code") if isinstance(problem.get("code"), str) else None
    why = CODES.get(code or "") or by_status(status)
    detail = problem.get("detail") or problem.get("title")
    if not isinstance(detail, str) or not detail:
        kind = headers.get("content-type", "no content type").partition(";")[0]
        detail = f"HTTP {status} ({code or kind})"
        if why is Why.FOREIGN:
            detail = f"HTTP {status} with {kind} ({quoted(body)})"
    return Refusal(
        why,
        detail,
        status,
        code,
        retry_after(headers),
        maybe(problem, "epoch"),
        maybe_int(problem, "first_sequence"),
        maybe_int(problem, "last_sequence"),
        stored_text(problem, "run_id"),
    )
