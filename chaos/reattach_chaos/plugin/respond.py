"""`Responder`: answers a mocked request as the server behind the gate does, cut where the case cuts: a side effect for respx.

Stalls need a real connection: httpx's own time limits do not reach here.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx

from reattach_chaos.plugin.wire import exchange


class Responder:
    """It, for one case.

    Args:
        url: The gate's.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80

    def __call__(self, request: httpx.Request, *_: object, **__: object) -> httpx.Response:
        """Answer; the path and query are the request's, the server is the case's.

        Raises:
            httpx.TransportError: As the wire had it.
        """
        return exchange(request, self._host, self._port)
