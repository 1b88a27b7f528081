"""The stage of tests on Redis: real servers of Debian's package, started on free loopback ports, ended by their process ids.

One quiet server is shared by a session's tests, each with a database of its own; a test that kills or restores a Redis starts
one for itself. As root it runs as another user, as a packaged one does.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import redis

PATIENCE = 60.0  # seconds; a server starts in a fraction of one
SAFE = {"appendonly": "yes", "appendfsync": "always"}


def required() -> str:
    """Return the program; without one the test is skipped, or fails where all must run."""
    found = shutil.which("redis-server")
    if found is None:
        text = "no Redis here: install Debian's package redis-server, or put redis-server on the PATH"
        if os.environ.get("REATTACH_REQUIRE_ALL"):
            pytest.fail(text)
        pytest.skip(text)
    return found


class RedisServer:
    """A Redis of our own; `settings` are of its configuration, in place of those that make it durable."""

    def __init__(self, **settings: str) -> None:
        self._program = required()
        self.folder = Path(tempfile.mkdtemp(prefix="reattach-redis-"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = _another_user()
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self.settings = {**SAFE, "save": "", "databases": "1000", "repl-diskless-sync-delay": "0", **settings}
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """Its address, the database with the number 0."""
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        """Return a client to look with."""
        return redis.Redis(port=self.port, password=self.settings.get("requirepass"), decode_responses=True)

    def start(self) -> None:
        """Start it and wait until it answers."""
        words = [word for name, value in self.settings.items() for word in (f"--{name}", *(value.split() or [""]))]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder), *words],
                stdout=log, stderr=log, cwd=self.folder, **self._as,
            )  # fmt: skip
        deadline = time.monotonic() + PATIENCE
        with self.client() as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.RedisError:
                    assert self._process.poll() is None, (self.folder / "log").read_text()
                    assert time.monotonic() < deadline, "the server does not start"
                    time.sleep(0.01)

    def kill(self) -> None:
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """End it as a crash does, and start it again on the same files."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """End it."""
        self._end(signal.SIGTERM)

    def remove(self) -> None:
        """End it and remove its data."""
        self._end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def copy(self, to: Path) -> None:
        """Copy its files while it runs, as a backup does."""
        shutil.copytree(self.folder / "appendonlydir", to)

    def restore(self, copy: Path) -> None:
        """Start it again on an older copy of its files."""
        self.kill()
        shutil.rmtree(self.folder / "appendonlydir")
        shutil.copytree(copy, self.folder / "appendonlydir")
        if self._as:
            for each in [self.folder / "appendonlydir", *(self.folder / "appendonlydir").iterdir()]:
                os.chown(each, self._as["user"], self._as["group"])
        self.start()

    def _end(self, how: int) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None


def free_port() -> int:
    """Return a port that nobody gets for the asking: between a kill and the next start it must stay free."""
    for port in random.sample(range(15_000, 32_000), 100):
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def _another_user() -> pwd.struct_passwd:
    for name in ("redis", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    pytest.skip("there is neither a user redis nor nobody")


@functools.cache
def shared_server() -> RedisServer:
    """Return this session's quiet server."""
    started = RedisServer(appendfsync="no")  # nobody kills it: waiting for the disk would only take time
    atexit.register(started.remove)
    return started


_databases = itertools.count(1)


def empty_database() -> str:
    """Return the address of a database of the quiet server that nobody else uses."""
    return f"redis://127.0.0.1:{shared_server().port}/{next(_databases) % 1000}"
