"""Intent: what may be said about a start before and after its request left. Pure.

A key is the application's own name for the work: 1 to 255 visible ASCII characters, compared byte for byte (protocol.md, 2). The
same key with the same input is the same work; with another input it is a mistake, found before anything is sent.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

KEY_BYTES = 255


def key_fault(key: object) -> str | None:
    """Say what is wrong with a key, None if it is good."""
    if not isinstance(key, str):
        return f"key={key!r}: a text is needed"
    if not key:
        return "key='' is empty"
    if len(key) > KEY_BYTES:
        return f"the key has {len(key)} characters, at most {KEY_BYTES} are allowed"
    bad = next((letter for letter in key if not "!" <= letter <= "~"), None)
    return None if bad is None else f"key={key!r} holds {bad!r}: only visible ASCII characters, no spaces"


def request_text(request: Mapping[str, Any]) -> str:
    """Return the request body's JSON text, as it is kept and as it is sent.

    Raises:
        ValueError: It holds what JSON cannot (NaN, a set, a key that is no text, too deep).
    """
    try:
        return json.dumps(_checked(request), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the input is not JSON: {error}") from error


def request_digest(text: str) -> str:
    """Return the SHA-256 of a request body as a value: order of members and 1 against 1.0 do not count."""
    canonical = json.dumps(_plain(json.loads(text)), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _checked(value: Any) -> Any:
    """Return the value with tuples and mappings made plain; text keys only, since JSON would turn 1 into "1" in silence."""
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"a member's name is {name!r}, not a text")
        return {name: _checked(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return [_checked(each) for each in value]
    return value


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case float() if math.isfinite(value) and value.is_integer() and abs(value) < 2**53:
            return int(value)
        case _:
            return value


def stale(sent_at: datetime, now: datetime, key_hours: float) -> bool:
    """Whether the server may have forgotten the key, so that sending it again could begin a second run."""
    return now - sent_at > timedelta(hours=key_hours)
