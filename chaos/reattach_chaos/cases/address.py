"""A server's address, as a flag or a schedule names it: what cannot be one is refused before anything is started. Pure."""

from urllib.parse import urlsplit

import httpx

_NEEDED = "an address such as http://127.0.0.1:8700 is needed"


def objection_to_url(url: str) -> str:
    """Return why an address is none that a client can be sent to; "" where it is one."""
    try:
        parts, port = urlsplit(url), urlsplit(url).port
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL) as error:
        return f"{_NEEDED} ({error})"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return _NEEDED
    return f"{_NEEDED} (a port is from 1 to 65535)" if port == 0 else ""
