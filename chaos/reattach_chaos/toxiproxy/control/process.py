"""The real `toxiproxy-server` as a process of our own: started on a free loopback port, watched, ended by its process id."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import tempfile
import time

import requests

from reattach_chaos.toxiproxy.control.errors import InfrastructureError

_START_S = 20.0
_STOP_S = 5.0
_TRIES = 5  # the port that was free may be taken before the server has it
_GOROUTINES = re.compile(r"^go_goroutines (\d+)", re.MULTILINE)


class ServerProcess:
    """A server, running until it is closed.

    Args:
        binary: The program.

    Raises:
        InfrastructureError: It does not start; the text has its last words.
    """

    def __init__(self, binary: str) -> None:
        self._binary = binary
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        for _ in range(_TRIES):
            port = _free_port()
            self.url = f"http://127.0.0.1:{port}"
            self._process = self._start(port)
            if self._answers():
                return
            self._end()
        condition = self.condition()
        self.close()
        raise InfrastructureError(f"{binary} does not start{condition}")

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [self._binary, "-host", "127.0.0.1", "-port", str(port), "-runtime-metrics"],
                env={**os.environ, "LOG_LEVEL": "error"},
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
            )
        except OSError as error:
            self._log.close()
            raise InfrastructureError(f"{self._binary} cannot be started: {error}") from error

    def _answers(self) -> bool:
        deadline = time.monotonic() + _START_S
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(requests.RequestException):
                if self._get("/version") is not None:
                    return True
            time.sleep(0.01)
        return False

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def goroutines(self) -> int:
        """Return how many goroutines it has: about one is left behind by each connection that was cut, for good."""
        try:
            found = _GOROUTINES.search(self._get("/metrics") or "")
        except requests.RequestException as error:
            raise InfrastructureError(f"{self.url}/metrics failed{self.condition()}: {error}") from error
        return int(found[1]) if found else 0

    def condition(self) -> str:
        """Return what is known about a process that has ended; nothing while it runs."""
        code = self._process.poll()
        if code is None or self._log.closed:
            return ""
        self._log.seek(0)
        words = self._log.read().decode("utf-8", "replace").strip().splitlines()
        said = next((line for line in words if "panic" in line or "fatal" in line), words[-1] if words else "")
        return f" (the process has ended, exit {code}{': ' + said[:200] if said else ''})"

    def close(self) -> None:
        """End it, with FIN to what is connected; twice is fine."""
        self._end()
        self._log.close()

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _get(self, path: str) -> str | None:
        with requests.Session() as session:
            session.trust_env = False
            response = session.get(self.url + path, timeout=2.0)
        return response.text if response.ok else None


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
