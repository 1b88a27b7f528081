"""`HttpWorld`: the small client's surroundings on real sockets, by the contract for clients under test.

Plain `http.client`, a connection a request. The state is one JSON file in REATTACH_STATE, replaced as a whole; the lease is a
number beside it. Lines go to stdout, flushed.
"""

import contextlib
import http.client
import json
import os
import random
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from reattach_chaos.mutants.world import Answer, Fenced, Lost, Silent, StoreBroken

CONNECT_S = 5.0
READ_BYTES = 65536
LEAST_S = 0.001


class HttpStream:
    """An answer to a request for a stream; see the seam."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse, code: str) -> None:
        self.status = response.status
        self.code = code
        wish = response.getheader("Retry-After") or ""
        self.retry_after = float(wish) if wish.isascii() and wish.isdigit() else None
        self._connection = connection
        self._response = response

    def read(self, timeout: float) -> bytes:
        """Return what comes next; see the seam."""
        sock = self._connection.sock
        if sock is not None:
            sock.settimeout(max(timeout, LEAST_S))
        try:
            return self._response.read1(READ_BYTES)
        except TimeoutError as error:
            raise Silent from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Lost(str(error)) from error

    def close(self) -> None:
        """Hang up."""
        self._response.close()
        self._connection.close()


class HttpWorld:
    """See the module.

    Args:
        url: The server's base, through whatever is between.
        state: The folder that is kept over kills.
        token: For the Authorization header; "" sends none.
        input: What a run is asked to do.
    """

    def __init__(self, url: str, state: Path, *, token: str = "", input: str = "") -> None:
        self._parts = urlsplit(url)
        self._file = state / "client.json"
        self._lease = state / "client.lease"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._input = input
        self._random = random.Random(os.getpid())

    def now(self) -> float:
        """Return the time."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def draw(self, low: float, high: float) -> float:
        """Return a number by chance."""
        return self._random.uniform(low, high)

    def say(self, line: Mapping[str, Any]) -> None:
        """Show a line to the application."""
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def load(self) -> dict[str, Any]:
        """Return what was saved."""
        with contextlib.suppress(FileNotFoundError):
            found: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
            return found
        return {}

    def lease(self) -> int:
        """Take the store over."""
        token = self._token() + 1
        self._lease.write_text(str(token))
        self.say({"kind": "lease", "token": token})
        return token

    def save(self, state: Mapping[str, Any], token: int | None) -> None:
        """Make this durable; see the seam."""
        if token is not None and token != self._token():
            raise Fenced
        made = self._file.with_suffix(f".{os.getpid()}")
        try:
            made.write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")
            made.replace(self._file)  # a kill leaves the old state or the new one
        except OSError as error:
            raise StoreBroken from error

    def create(self, key: str) -> Answer:
        """Ask for a run."""
        body = json.dumps({"input": self._input}).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        return self._call("POST", "/v1/runs", body, headers)

    def status(self, run: str) -> Answer:
        """Ask for a run's status."""
        return self._call("GET", f"/v1/runs/{quote(run, safe='')}", None, {})

    def attach(self, run: str, after: str | None) -> HttpStream:
        """Ask for a run's events."""
        target = f"/v1/runs/{quote(run, safe='')}/events" + ("?after=earliest" if after == "earliest" else "")
        headers = {"Accept": "text/event-stream"}
        if after not in (None, "earliest"):
            headers["Last-Event-ID"] = str(after)
        connection, response = self._ask("GET", target, None, headers)
        code = ""
        if response.status >= 400:
            with contextlib.suppress(ValueError, OSError, http.client.HTTPException, AttributeError):
                code = str(json.loads(response.read()).get("code", ""))
        return HttpStream(connection, response, code)

    def _call(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        connection, response = self._ask(method, target, body, headers)
        try:
            told = json.loads(response.read())
        except (ValueError, OSError, http.client.HTTPException) as error:
            raise Lost(str(error)) from error
        finally:
            connection.close()
        if response.status >= 400 or not isinstance(told, dict):
            raise Lost(f"HTTP {response.status}")
        return Answer(response.status, told)

    def _ask(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self._parts.netloc, timeout=CONNECT_S)
        try:
            connection.request(method, self._parts.path.rstrip("/") + target, body, {**self._headers, **headers})
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Lost(str(error)) from error

    def _token(self) -> int:
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int(self._lease.read_text())
        return 0
