"""The stage of tests on Toxiproxy: either backend, and a client and a server on plain sockets with the proxy between them.

The test plays both sides itself, so nothing runs beside it. The real programs are looked for where `.ci/run` puts them, then on the
PATH; without them a test is skipped aloud, and fails where everything is required.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from reattach_chaos.toxiproxy.control import Toxiproxy
from reattach_chaos.toxiproxy.control.backends import PROGRAM, VARIABLE

ROOT = Path(__file__).parents[1]
PATIENCE = 30.0  # seconds; nothing here takes one
QUIET = 0.08  # seconds without a byte that stand for silence
FOR_EVER_MS = 600_000
BACKENDS = ("embedded", "toxiproxy")


def missing(text: str) -> None:
    """Skip aloud, or fail where everything is required."""
    if os.environ.get("REATTACH_REQUIRE_ALL"):
        pytest.fail(text)
    pytest.skip(text)


def program(name: str) -> str:
    """Return the path of one of Toxiproxy's programs."""
    found = shutil.which(name, path=str(ROOT / ".ci" / "go")) or shutil.which(name)
    if found is None:
        missing(f"there is no {name} here: .ci/run installs it with Go; nothing was tested with it")
    assert found is not None
    return found


def toxiproxy(backend: str) -> Toxiproxy:
    """Return a server of its own."""
    if backend == "embedded":
        return Toxiproxy("embedded", seed=7)
    named = os.environ.get(VARIABLE, "")
    with pytest.MonkeyPatch.context() as patch:
        # An address may be somebody's who would not like to be reset.
        patch.setenv(VARIABLE, named if named and "://" not in named else program(PROGRAM))
        return Toxiproxy("toxiproxy")


@dataclass(frozen=True, slots=True)
class Answer:
    """An API's answer. `json`: the parsed body, None if it is none."""

    status: int
    media: str
    text: str
    json: Any


_DIRECT = build_opener(ProxyHandler({}))


class Api:
    """The HTTP API without any client library."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request(self.url + path, data=data, method=method, headers=names)
        try:
            response = _DIRECT.open(request, timeout=PATIENCE)
        except OSError as error:
            if not hasattr(error, "code"):
                raise
            response = error
        with contextlib.closing(response):
            text = response.read().decode()
        parsed = None
        with contextlib.suppress(ValueError):
            parsed = json.loads(text)
        return Answer(response.status, response.headers.get("Content-Type") or "", text, parsed)


class Side:
    """One end of a connection through the proxy."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.settimeout(PATIENCE)

    def sends(self, data: bytes) -> None:
        self.sock.sendall(data)

    def gets(self, count: int) -> bytes:
        """Read exactly so many bytes, fewer if it ends."""
        found = bytearray()
        while len(found) < count and (data := self.sock.recv(count - len(found))):
            found += data
        return bytes(found)

    def rest(self) -> tuple[bytes, str]:
        """Read to the end; return what came and how it ended: `fin` or `rst`."""
        found = bytearray()
        try:
            while data := self.sock.recv(65536):
                found += data
        except ConnectionError:
            return bytes(found), "rst"
        return bytes(found), "fin"

    def is_silent(self, seconds: float = QUIET) -> bool:
        """Whether nothing comes, neither a byte nor an end, for a while. A busy machine can only make it True."""
        self.sock.settimeout(seconds)
        try:
            return self.sock.recv(1, socket.MSG_PEEK) is None
        except TimeoutError:
            return True
        except ConnectionError:
            return False
        finally:
            self.sock.settimeout(PATIENCE)

    def closes(self) -> None:
        self.sock.close()

    def finishes(self) -> None:
        """Close the write side only."""
        self.sock.shutdown(socket.SHUT_WR)

    def resets(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def pour(source: Side, target: Side, data: bytes) -> tuple[bytes, str]:
    """Send as fast as it is taken, and read meanwhile, until all has come or it ends; return what came and how it ended."""
    source.sock.setblocking(False)
    sent, found = 0, bytearray()
    while len(found) < len(data):
        want = [source.sock] if sent < len(data) else []
        readable, writable, _ = select.select([target.sock], want, [], PATIENCE)
        assert readable or writable, f"nothing moves after {len(found)} of {len(data)} bytes"
        if writable:
            try:
                sent += source.sock.send(data[sent : sent + 65536])
            except ConnectionError:
                sent = len(data)  # the source was cut off: what is under way still comes
        if readable:
            try:
                part = target.sock.recv(50_000)
            except ConnectionError:
                return bytes(found), "rst"
            if not part:
                return bytes(found), "fin"
            found += part
    return bytes(found), "open"


class Stage:
    """One test's proxy on one backend, with an upstream that the test accepts for."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._names = 0
        self._open = contextlib.ExitStack()
        self.upstream_socket = socket.create_server(("127.0.0.1", 0))
        self.upstream_socket.settimeout(PATIENCE)
        self._open.callback(self.upstream_socket.close)
        self.upstream = f"127.0.0.1:{self.upstream_socket.getsockname()[1]}"
        self.name = f"t{os.getpid()}-{time.monotonic_ns()}"
        self.proxy = self.made(self.name)

    def made(self, name: str, **settings: Any) -> dict[str, Any]:
        """Make a proxy; it goes with the stage."""
        body = {"name": name, "upstream": self.upstream, "listen": "127.0.0.1:0", **settings}
        answer = self.api("POST", "/proxies", body)
        assert answer.status == 201, answer.text
        self._open.callback(self.api, "DELETE", f"/proxies/{name}")
        return answer.json

    def kept(self, sock: socket.socket) -> socket.socket:
        """Close a socket with the stage."""
        return self._open.enter_context(sock)

    def raw_api(self) -> Side:
        """Connect to the API itself."""
        host, _, port = self.api.url.removeprefix("http://").rpartition(":")
        return Side(self.kept(socket.create_connection((host, int(port)), timeout=PATIENCE)))

    @property
    def path(self) -> str:
        return f"/proxies/{self.name}"

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.proxy["listen"].rpartition(":")
        return host, int(port)

    def toxic(self, kind: str, stream: str = "downstream", toxicity: float = 1, **attributes: int) -> str:
        """Add a toxic; return its path."""
        body = {"type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes}
        answer = self.api("POST", f"{self.path}/toxics", body)
        assert answer.status == 200, answer.text
        return f"{self.path}/toxics/{answer.json['name']}"

    def removed(self, path: str) -> None:
        answer = self.api("DELETE", path)
        assert answer.status == 204, answer.text

    def enabled(self, value: bool) -> None:
        answer = self.api("PATCH", self.path, {"enabled": value})
        assert answer.status == 200, answer.text

    def client(self) -> Side:
        """Connect a client, and nothing else."""
        side = Side(socket.create_connection(self.address, timeout=PATIENCE))
        self._open.callback(side.closes)
        return side

    def server(self) -> Side:
        """Accept what the proxy has dialled."""
        side = Side(self.upstream_socket.accept()[0])
        self._open.callback(side.closes)
        return side

    def connected(self) -> tuple[Side, Side]:
        """Return both sides of a new connection, the client's first, once bytes could pass."""
        client = self.client()
        return client, self.server()

    def close(self) -> None:
        self._open.close()


@pytest.fixture(scope="module", params=BACKENDS)
def server(request: pytest.FixtureRequest) -> Iterator[Toxiproxy]:
    """A server of the module's own, on each backend."""
    with toxiproxy(request.param) as running:
        yield running


@pytest.fixture
def api(server: Toxiproxy) -> Api:
    return Api(server.url)


@pytest.fixture
def stage(api: Api, caplog: pytest.LogCaptureFixture) -> Iterator[Stage]:
    """A test's proxy; what the embedded server's loop complains of fails the test."""
    made = Stage(api)
    yield made
    made.close()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
