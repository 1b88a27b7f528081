"""Which proxy, if any, a URL is reached through: the environment's rules, as httpx reads them.

Pure but for one reading of the environment. httpx keeps these rules to itself, so they are written here again; where one is
surprising (a network mask in NO_PROXY has no effect) it is kept, since "as httpx would" is the promise.

Checked by tests/client/transports/test_proxies.py against httpx's own choice.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import NamedTuple
from urllib.request import getproxies

import httpx


class _Rule(NamedTuple):
    scheme: str
    host: str
    port: int | None
    proxy: str | None  # None: directly

    def applies(self, url: httpx.URL) -> bool:
        if self.scheme and self.scheme != url.scheme:
            return False
        if self.port is not None and self.port != url.port:
            return False
        if not self.host or self.host == "*":
            return True
        if self.host.startswith("*."):
            return re.fullmatch(f".+\\.{re.escape(self.host[2:])}", url.host) is not None
        if self.host.startswith("*"):
            return re.fullmatch(f"(.+\\.)?{re.escape(self.host[1:])}", url.host) is not None
        return self.host == url.host


class Routes:
    """The rules in force when it was made.

    Args:
        proxy: A proxy for every URL; then the environment is not looked at.
        environment: Whether to obey HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY.
    """

    def __init__(self, proxy: str | None = None, *, environment: bool = True) -> None:
        wishes = {"all://": proxy} if proxy is not None else _wishes() if environment else {}
        self._rules = sorted((_rule(pattern, to) for pattern, to in wishes.items()), key=_precedence)

    def proxy(self, url: httpx.URL) -> str | None:
        """Return the URL of the proxy to use, or None."""
        return next((rule.proxy for rule in self._rules if rule.applies(url)), None)


def _rule(pattern: str, proxy: str | None) -> _Rule:
    url = httpx.URL(pattern)
    return _Rule("" if url.scheme == "all" else url.scheme, url.host, url.port, proxy)


def _precedence(rule: _Rule) -> tuple[bool, int, int]:
    """The more special rule first: one with a port, the longer host, the longer scheme."""
    return rule.port is None, -len("" if rule.host == "*" else rule.host), -len(rule.scheme)


def _wishes() -> dict[str, str | None]:
    found = getproxies()
    wishes: dict[str, str | None] = {}
    for scheme in ("http", "https", "all"):
        if to := found.get(scheme):
            wishes[f"{scheme}://"] = to if "://" in to else f"http://{to}"
    for name in (each.strip() for each in found.get("no", "").split(",")):
        if name == "*":
            return {}
        if name:
            wishes[_pattern(name)] = None
    return wishes


def _pattern(name: str) -> str:
    """Return the pattern of one entry of NO_PROXY."""
    if "://" in name:
        return name
    if name.lower() == "localhost":
        return f"all://{name}"
    try:
        version = ip_address(name.split("/")[0]).version
    except ValueError:
        return f"all://*{name}"
    return f"all://{name}" if version == 4 else f"all://[{name}]"
