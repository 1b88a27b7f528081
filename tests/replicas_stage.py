"""The stage of tests of several server processes: a Redis, replicas of `reattach serve`, and nginx in front of them, all real.

Processes are started on free loopback ports, in a folder of their own, and ended by their process ids.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from reattach_mockserver.logs.base import Counts
from redis_stage import RedisServer, free_port

PATIENCE = 120.0  # seconds; a busy machine takes ten to start a process

NGINX_CONF = """
daemon off;
master_process on;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/err;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream replicas {{
    {servers}
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://replicas;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 1h;
      # Every call may be repeated, a create because of its key: whoever is gone, or drains, is passed over.
      proxy_next_upstream error timeout http_503 non_idempotent;
    }}
  }}
}}
"""


def nginx_program() -> str:
    """Return nginx; without one the test is skipped, or fails where all must run."""
    found = shutil.which("nginx") or ("/usr/sbin/nginx" if Path("/usr/sbin/nginx").exists() else None)
    if found is None:
        text = "no nginx here: install Debian's package nginx-light, or put nginx on the PATH"
        if os.environ.get("REATTACH_REQUIRE_ALL"):
            pytest.fail(text)
        pytest.skip(text)
    return found


class Nginx:
    """A round robin over ports of this machine."""

    def __init__(self, ports: Sequence[int]) -> None:
        program = nginx_program()
        self.folder = Path(tempfile.mkdtemp(prefix="reattach-nginx-"))
        self.folder.chmod(0o755)  # its workers are another user's where it is started by root
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        servers = "\n    ".join(f"server 127.0.0.1:{port} max_fails=1 fail_timeout=1s;" for port in ports)
        conf = self.folder / "conf"
        conf.write_text(NGINX_CONF.format(folder=self.folder, servers=servers, port=self.port))
        self._process = subprocess.Popen([program, "-p", self.folder, "-c", conf, "-e", self.folder / "err"])
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            assert self._process.poll() is None, (self.folder / "err").read_text()
            assert time.monotonic() < deadline, "nginx does not start"
            time.sleep(0.01)

    def stop(self) -> None:
        """End it and remove its folder."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


class Replica:
    """One server process, on one port for all its lives."""

    def __init__(self, *arguments: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None
        self.starts = 0

    def begin(self) -> None:
        """Start it; see `ready`."""
        command = [
            sys.executable,
            "-m",
            "reattach_mockserver.cli",
            "--port",
            str(self.port),
            "--json",
            *self._arguments,
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.starts += 1

    def ready(self) -> None:
        """Wait until it accepts."""
        assert self._process is not None
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        assert ready, "the replica did not start"
        assert json.loads(self._process.stdout.readline())["url"] == self.url

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def pause(self) -> None:
        """Put it to sleep, as a host that is moved or swaps does."""
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on where it stood."""
        os.kill(self.pid, signal.SIGCONT)

    def end(self, how: int = signal.SIGKILL) -> int:
        """End it, and return its exit code; nothing if it does not run."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGCONT)
        self._process.send_signal(how)
        code = self._process.wait(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return code


class Cluster:
    """Replicas on one Redis behind nginx. Use as a context manager.

    Args:
        scenario: The file that runs play.
        number: How many replicas there are.
        lease: Their lease in seconds.
    """

    def __init__(self, scenario: Path, *, number: int = 2, lease: float = 0.8) -> None:
        nginx_program()
        self.redis = RedisServer()
        arguments = ("--log", self.redis.url, "--lease", str(lease), "--scenario", str(scenario), "--no-auth")
        self.replicas = [Replica(*arguments) for _ in range(number)]

    def __enter__(self) -> Self:
        for replica in self.replicas:
            replica.begin()
        for replica in self.replicas:
            replica.ready()
        self.nginx = Nginx([replica.port for replica in self.replicas])
        self.url = self.nginx.url
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.nginx.stop()
        for replica in self.replicas:
            replica.end()
        self.redis.remove()

    def restart(self, index: int, how: int) -> None:
        """End a replica and start it again."""
        self.replicas[index].end(how)
        self.replicas[index].begin()
        self.replicas[index].ready()

    def counts(self) -> Counts:
        """Return how much work the log knows of."""
        with self.redis.client() as client:
            found = client.hgetall("reattach:counts")
        runs, events, effects, attempts = (
            int(found.get(name, 0)) for name in ("runs", "events", "effects", "attempts")
        )
        return Counts(runs=runs, events=events, effects=effects, effect_attempts=attempts)


@contextmanager
def cluster(folder: Path, script: str, **options: float) -> Iterator[Cluster]:
    """Run replicas that play this script."""
    scenario = folder / "scenario.yaml"
    scenario.write_text(script)
    with Cluster(scenario, **options) as running:  # type: ignore[arg-type]  # number is whole
        yield running
