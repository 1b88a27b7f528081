"""The stage of tests on PostgreSQL: one real server a session, a schema of its own a test.

The server is Debian's package, started from its own binaries on a free loopback port, with its data in a new folder; it is ended by
its own process id. It refuses to run as root, so root starts it as another user.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

PATIENCE = 60.0  # seconds; a server starts in one


def binaries() -> Path | None:
    """Return the folder of the newest server's programs, None where there is none."""
    found = shutil.which("initdb")
    if found is not None and (Path(found).resolve().parent / "postgres").exists():
        return Path(found).resolve().parent
    folders = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((each.parent for each in folders), key=lambda each: float(each.parent.name), default=None)


def required() -> Path:
    """Return the folder of the programs; without one the test is skipped, or fails where all must run."""
    folder = binaries()
    if folder is None:
        text = "no PostgreSQL server here: install Debian's package postgresql, or put initdb and postgres on the PATH"
        if os.environ.get("REATTACH_REQUIRE_ALL"):
            pytest.fail(text)
        pytest.skip(text)
    return folder


class Server:
    """A server of our own."""

    def __init__(self, folder: Path) -> None:
        self._programs = folder
        self._folder = Path(tempfile.mkdtemp(prefix="reattach-postgres-"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = _another_user()
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self._folder, user.pw_uid, user.pw_gid)
        self._data = self._folder / "db"
        subprocess.run(
            [
                folder / "initdb", "-D", self._data, "-U", "u", "--auth-local=trust", "--auth-host=md5",
                "--pwfile", self._written("password", "geheim"), "--no-sync", "--locale=C", "--encoding=UTF8",
            ],
            check=True, capture_output=True, cwd=self._folder, **self._as,
        )  # fmt: skip
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _written(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.write_text(text + "\n")
        path.chmod(0o644)
        return path

    def start(self) -> None:
        """Start it and wait until it lets us in."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._programs / "postgres", "-D", self._data, "-p", str(self.port),
                    *_settings(listen_addresses="127.0.0.1", unix_socket_directories="", fsync="off", autovacuum="off",
                               shared_buffers="16MB", max_connections="60"),
                ],
                stdout=log, stderr=log, cwd=self._folder, **self._as,
            )  # fmt: skip
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self._folder / "log").read_text()
                assert time.monotonic() < deadline, "the server does not start"
                time.sleep(0.02)

    def stop(self, how: int = signal.SIGINT) -> None:
        """End it: SIGINT closes all sessions, SIGQUIT is as good as a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def crash(self) -> None:
        """End it as a crash does, and start it again."""
        self.stop(signal.SIGQUIT)
        self.start()

    def remove(self) -> None:
        """End it and remove its data."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, schema: str | None = None, *, port: int | None = None, password: str = "geheim") -> str:
        """Return an address, of one schema if it is named."""
        options = f"&options=-csearch_path%3D{schema}" if schema else ""
        plain = "sslmode=disable&gssencmode=disable"  # a proxy in between can then tell the messages apart
        return f"postgresql://u:{password}@127.0.0.1:{port or self.port}/postgres?{plain}{options}"


def _free_port() -> int:
    """Return a port that nobody gets for the asking: between a crash and the next start it must stay free."""
    for port in random.sample(range(15_000, 32_000), 100):
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def _settings(**settings: str) -> list[str]:
    return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


def _another_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    pytest.skip("PostgreSQL refuses root, and there is neither a user postgres nor nobody")


@functools.cache
def server() -> Server:
    """Return this session's server."""
    started = Server(required())
    atexit.register(started.remove)
    return started


class Database:
    """One test's journal: a schema of its own."""

    def __init__(self, running: Server) -> None:
        self.server = running
        self.schema = f"t_{secrets.token_hex(6)}"
        self.url = running.url(self.schema)
        self._connection: psycopg.Connection | None = None
        self.sql(f"CREATE SCHEMA {self.schema}")

    def through(self, port: int) -> str:
        """Return its address through a proxy."""
        return self.server.url(self.schema, port=port)

    def sql(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a statement beside the journal."""
        for _ in range(2):
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(self.url, autocommit=True, application_name="test")
            try:
                cursor = self._connection.execute(sql, parameters or None)
                return cursor.fetchall() if cursor.description is not None else []
            except psycopg.OperationalError:
                if not self._connection.closed:
                    raise  # else the test crashed the server meanwhile
        raise AssertionError("the server is away")

    def wait_for_sessions_to_end(self) -> None:
        """Wait until the server has noticed that its clients are gone, and has ended what they had begun."""
        deadline = time.monotonic() + PATIENCE
        while self.sql("SELECT 1 FROM pg_stat_activity WHERE application_name = 'reattach'"):
            assert time.monotonic() < deadline, "the server keeps a session"
            time.sleep(0.01)

    def close(self) -> None:
        """Let go of it; what it holds ends with the server."""
        if self._connection is not None:
            self._connection.close()


@pytest.fixture
def database() -> Iterator[Database]:
    """A journal's place, empty."""
    made = Database(server())
    yield made
    made.close()
