"""Small facts about payloads that profiles and stores share: the digest that tells a repeat from a conflict, times, ids."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import blake2b

_nothing_yet = blake2b(digest_size=8)
RUN_ID = 512  # characters; the longest that a journal or a path should have to carry


def instant(text: str) -> datetime | None:
    """Return an RFC 3339 time, None if it is not one (a vendor's clock is no reason to lose an event); without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def digest_of(payload: str) -> bytes:
    """Return the short digest of a payload's text: 8 bytes, for telling a repeat from a conflict."""
    digest = _nothing_yet.copy()  # cheaper than to make one
    digest.update(payload.encode("utf-8", "surrogatepass"))
    return digest.digest()


def encodable(text: str) -> bool:
    """Whether a text can be written as UTF-8: JSON may name half of a surrogate pair, which no file and no header can carry."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def run_id_good(told: object) -> bool:
    """Whether a value can be a run's id: printable, not too long for a path, and no step in it."""
    return isinstance(told, str) and 0 < len(told) <= RUN_ID and told.isprintable() and told not in (".", "..")
