"""A server's wishes in its headers: Retry-After in seconds, milliseconds or as a date."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_DIGITS = re.compile(r"\s*[0-9]+(\.[0-9]+)?\s*")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wish in seconds, never negative, None if there is none that can be read.

    A date is compared with the answer's own `Date`, so that a clock that is wrong on one side does not matter; without one, with
    ours. `Retry-After-Ms` (some vendors send it beside) is finer and wins.
    """
    fine = _number(headers.get("retry-after-ms"))
    if fine is not None:
        return fine / 1000.0
    told = headers.get("retry-after")
    if told is None:
        return None
    seconds = _number(told)
    if seconds is not None:
        return seconds
    until = _date(told)
    if until is None:
        return None
    now = _date(headers.get("date")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _number(text: str | None) -> float | None:
    if text is None or not _DIGITS.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _date(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        value = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)
