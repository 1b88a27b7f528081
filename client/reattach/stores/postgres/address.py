"""The database's address as people may read it: without its secrets. Pure functions."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

_SECRET = frozenset({"password", "sslpassword", "oauth_client_secret"})


def shown(url: str) -> str:
    """Return the address without passwords."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    query = urlencode([(name, value) for name, value in _query(parts) if name not in _SECRET])
    name = f"{parts.scheme}://{user.partition(':')[0]}{at}{hosts}{parts.path}"
    return f"{name}?{query}" if query else name


def scrubbed(text: str, url: str) -> str:
    """Return a driver's message without the passwords of the address, should it repeat one."""
    parts = urlsplit(url)
    password = parts.netloc.rpartition("@")[0].partition(":")[2]
    secrets = {password, unquote(password), *(value for name, value in _query(parts) if name in _SECRET)}
    for secret in sorted(secrets, key=len, reverse=True):
        if secret:
            text = text.replace(secret, "***")
    return text


def _query(parts: SplitResult) -> list[tuple[str, str]]:
    return parse_qsl(parts.query, keep_blank_values=True)
