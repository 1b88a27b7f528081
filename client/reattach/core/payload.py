"""Small facts about payloads that profiles and stores share: the digest that tells a repeat from a conflict, and times."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import blake2b


def instant(text: str) -> datetime | None:
    """Return an RFC 3339 time, None if it is not one (a vendor's clock is no reason to lose an event); without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def digest_of(payload: str) -> bytes:
    """Return the short digest of a payload's text: 8 bytes, for telling a repeat from a conflict."""
    return blake2b(payload.encode("utf-8", "surrogatepass"), digest_size=8).digest()
