"""Which form an answer has: what `Accept` and `Content-Type` say.

Pure. Where the rules come from: PROTOCOL, section 3 (last sentence) and section 4, Refusals.
Checked by tests/mockserver/test_http.py.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

Form: TypeAlias = Literal["json", "sse"]

_JSON = ("application/json", "application/*", "*/*")


def chosen_form(accept: Sequence[str]) -> Form | None:
    """Return the form for a resource that has both: SSE if named with a weight not below JSON's; None for neither."""
    weights = _weights(accept)
    if weights is None:
        return "json"
    stream, document = weights.get("text/event-stream", 0.0), _json_weight(weights)
    if stream > 0 and stream >= document:
        return "sse"
    return "json" if document > 0 else None


def takes_json(accept: Sequence[str]) -> bool:
    """Tell whether a resource that is JSON only may be sent."""
    weights = _weights(accept)
    return weights is None or _json_weight(weights) > 0


def is_json(content_type: Sequence[str]) -> bool:
    """Tell whether a body is JSON by its declared type; none declared means JSON."""
    if not content_type:
        return True
    kind = content_type[0].partition(";")[0].strip().lower()
    return len(content_type) == 1 and (kind == "application/json" or kind.endswith("+json"))


def _json_weight(weights: dict[str, float]) -> float:
    # The most specific range decides, as in RFC 9110, 12.5.1: `application/json;q=0, */*` is a no.
    return next((weights[kind] for kind in _JSON if kind in weights), 0.0)


def _weights(accept: Sequence[str]) -> dict[str, float] | None:
    """Return the weight of each media range; None where nothing is asked for."""
    ranges = [part.strip() for line in accept for part in line.split(",") if part.strip()]
    if not ranges:
        return None
    weights: dict[str, float] = {}
    for text in ranges:
        kind, *parameters = (piece.strip().lower() for piece in text.split(";"))
        weights[kind] = max(weights.get(kind, 0.0), _weight(parameters))
    return weights


def _weight(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return min(max(float(parameter[2:]), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
