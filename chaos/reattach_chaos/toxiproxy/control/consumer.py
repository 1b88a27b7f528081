"""The HTTP half of toxiproxy-python, replaced: one object a server, a time limit for every call, errors that are errors.

The library keeps host and port in one class for the whole process, waits for ever, and takes a 500 or 503 for success. Its other
classes only ask their consumer for `get`, `post` and `delete`, so they run unchanged over this one (`library.py`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests

from reattach_chaos.toxiproxy.control.errors import Declined, InfrastructureError

LIMIT_S = 8.0  # a healthy server answers in milliseconds; one removal takes it a fixed 5.0 s


class Consumer:
    """Sends requests to one server. Any thread may use it.

    Args:
        url: The server's, without a path.
        limit_s: Seconds for one call.
        condition: Tells more about a server that does not answer, or nothing.
    """

    def __init__(self, url: str, *, limit_s: float = LIMIT_S, condition: Callable[[], str] = lambda: "") -> None:
        parts = urlsplit(url)
        self.url = url.rstrip("/")
        self.host = parts.hostname or "127.0.0.1"
        self.port = parts.port or 8474
        self._limit_s = limit_s
        self._condition = condition
        self._sessions = threading.local()

    def get(self, url: str, params: Any = None, **more: Any) -> requests.Response:
        """Ask."""
        return self._send("GET", url, params=params, **more)

    def post(self, url: str, data: Any = None, json: Any = None, **more: Any) -> requests.Response:
        """Make, or do."""
        return self._send("POST", url, data=data, json=json, **more)

    def delete(self, url: str, **more: Any) -> requests.Response:
        """Remove."""
        return self._send("DELETE", url, **more)

    def patch(self, url: str, json: Any) -> requests.Response:
        """Change; the library has no such thing."""
        return self._send("PATCH", url, json=json)

    def _send(self, method: str, path: str, **more: Any) -> requests.Response:
        what = f"{method} {self.url}{path}"
        try:
            response = self._session().request(
                method, self.url + path, **{"timeout": self._limit_s, "allow_redirects": False, **more}
            )
        except requests.Timeout as error:
            raise InfrastructureError(
                f"{what} was not answered for {self._limit_s:g} s{self._condition()}. Toxiproxy's API hangs for good once a toxic "
                "was changed while a client did not read; nothing can be said about the client. Start another server."
            ) from error
        except requests.RequestException as error:
            raise InfrastructureError(f"{what} failed{self._condition()}: {error}") from error
        if response.status_code == 503:
            # The server's own limit: what it abandoned keeps its lock.
            raise InfrastructureError(
                f"{what} was given up by the server (503){self._condition()}. Start another server."
            )
        if response.status_code >= 300:
            raise Declined(what, response.status_code, _text(response))
        return response

    def _session(self) -> requests.Session:
        if not hasattr(self._sessions, "session"):
            session = requests.Session()
            session.trust_env = False  # HTTP_PROXY is not meant for the fault injector
            session.headers["Connection"] = "close"  # an idle one may be closed by the server just when we send
            self._sessions.session = session
        found: requests.Session = self._sessions.session
        return found


def _text(response: requests.Response) -> str:
    try:
        return str(json.loads(response.content)["error"])
    except (ValueError, KeyError, TypeError):
        return response.text.strip()[:200] or response.reason
