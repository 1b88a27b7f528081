"""Times as a journal holds them: RFC 3339 in UTC, always of the same width, so that text order is time order."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(seconds: float) -> str:
    """Return the text of a wall-clock time, in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def moment(text: str | None) -> datetime | None:
    """Return the time of a text, None of None."""
    return datetime.fromisoformat(text) if text is not None else None


def text_of(moment: datetime) -> str:
    """Return the text of a time, as `stamp` writes it."""
    return stamp(moment.timestamp())


def seconds_of(text: str | None) -> float:
    """Return the wall-clock seconds of a text; of None the beginning of all time."""
    return datetime.fromisoformat(text).timestamp() if text is not None else 0.0
