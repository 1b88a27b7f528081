"""Digests by which an event's content is compared across witnesses: a client's line, the wire, the control reader's page."""

import hashlib
import json
from typing import Any


def content_sha256(data: Any) -> str:
    """Return the digest of an event's data: of its JSON text, compact, members in the order in which they came.

    Two digests are equal where every character of every value is, whatever white space and escapes a writer used.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def bytes_sha256(data: bytes) -> str:
    """Return the digest of bytes as they are."""
    return hashlib.sha256(data).hexdigest()
