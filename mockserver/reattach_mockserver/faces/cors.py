"""What browsers of other origins may do: headers of every answer, the preflight, and who may open a socket.

Any origin where tokens are in use, since a foreign page has none of them; loopback origins otherwise, so that a page
from elsewhere cannot read a developer's server. Pure.

Where the rules come from: PROTOCOL, section 8. Checked by tests/mockserver/test_http.py.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

_ALLOWED = "Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID"
_EXPOSED = "ETag, Idempotency-Replayed, Location, Retry-After"
_MAX_AGE = "600"  # seconds; two browsers cap it at 600 and 7200


def cors_headers(origins: Sequence[str], *, tokens: bool) -> dict[str, str]:
    """Return what every answer to a call with these `Origin` headers carries."""
    if tokens:
        return {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": _EXPOSED}
    headers = {"Vary": "Origin"}
    if len(origins) == 1 and is_loopback(origins[0]):
        headers |= {"Access-Control-Allow-Origin": origins[0], "Access-Control-Expose-Headers": _EXPOSED}
    return headers


def may_connect(origins: Sequence[str], *, tokens: bool) -> bool:
    """Whether a socket with these `Origin` headers may open: browsers ask nobody before they open one, so we must."""
    return tokens or not origins or (len(origins) == 1 and is_loopback(origins[0]))


def preflight_headers(methods: Sequence[str]) -> dict[str, str]:
    """Return what the answer to a preflight carries besides."""
    return {
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": _ALLOWED,
        "Access-Control-Max-Age": _MAX_AGE,
    }


def is_loopback(origin: str) -> bool:
    """Tell whether a web address is one of this machine's own."""
    try:
        parts = urlsplit(origin)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and (
        host in ("localhost", "127.0.0.1", "::1") or host.endswith(".localhost")
    )
