"""One session with the server: how it is begun, what it never waits for, and our statements on it.

Every wait has an end: the driver itself would wait for ever for a server that went silent behind an open connection.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar, cast

import psycopg
from psycopg import RawCursor
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import tuple_row

from reattach.stores.base import StoreFailed
from reattach.stores.postgres.errors import LOCK_SECONDS, Unanswered

T = TypeVar("T")
C = TypeVar("C", bound="Connection")

_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5,
    # A host that vanished is noticed within about ten seconds, not two hours.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "fallback_application_name": "reattach",
    "client_encoding": "utf8",
}
IDLE_SECONDS = 90
"""A transaction that says nothing for so long is ended by the server: its client's host is gone, its locks must not stay."""

SETTINGS = f"""SELECT set_config('lock_timeout', '{LOCK_SECONDS}s', false),
    set_config('idle_in_transaction_session_timeout', '{IDLE_SECONDS}s', false),
    set_config('default_transaction_isolation', 'read committed', false),
    CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END"""
"""What a session is set to, whatever the server's own default: what returned is on its disk."""
_BEGIN = """SELECT pid, backend_start::text, current_setting('server_encoding')
    FROM pg_stat_activity WHERE pid = pg_backend_pid()"""


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A driver's connection that gives the server up after `silence` seconds without a byte to or from it (None: it waits)."""

    silence: float | None = None
    cursors: type[psycopg.Cursor[tuple[Any, ...]]] = psycopg.Cursor

    def wait(self, gen: PQGen[T], *args: Any, **settings: Any) -> T:
        """See the driver's; raises `Unanswered`."""
        if self.silence is not None:
            gen = self._bounded(gen, self.silence)
        return super().wait(gen, *args, **settings)

    def _bounded(self, gen: PQGen[T], silence: float) -> PQGen[T]:
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted  # comes back at least ten times a second, also when nothing happened
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > silence:
                    gen.close()
                    self.close()
                    raise Unanswered("the server does not answer")
                wanted = gen.send(ready)
        except StopIteration as end:
            return cast(T, end.value)


class Session:
    """A connection with our settings, our placeholders, and its name in the server's list of sessions.

    Args:
        url: Where.
        kind: What is made.
        autocommit: False where the driver begins transactions, as a user expects.

    Raises:
        psycopg.Error: There is no such server, it does not let us in, or does not answer.
        StoreFailed: The database cannot hold a journal.
    """

    def __init__(self, url: str, kind: type[Connection] = Connection, *, autocommit: bool = True) -> None:
        given = conninfo_to_dict(url)
        info = make_conninfo("", **{**{k: v for k, v in _DEFAULTS.items() if k not in given}, **given})
        self.connection = kind.connect(info, autocommit=True, cursor_factory=kind.cursors)
        try:
            with self.within(float(_DEFAULTS["connect_timeout"])):
                self.pid, self.since, encoding = self.execute(_BEGIN).fetchone()
                self.execute(SETTINGS)
            if encoding != "UTF8":
                raise StoreFailed(f"the database's encoding is {encoding}; a journal needs UTF8")
            self.connection.autocommit = autocommit
        except BaseException:
            self.connection.close()
            raise

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        """Run one of our statements, see `tables.connection`."""
        cursor = RawCursor(self.connection, row_factory=tuple_row)  # whatever a user's function made of the connection
        return cursor.execute(_native(sql), parameters or None)

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Wait for the server's next byte no longer than so."""
        self.connection.silence = seconds
        try:
            yield
        finally:
            self.connection.silence = None

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Send all statements inside in one go; their rows can be read behind it."""
        with self.connection.pipeline():
            yield

    def roll_back(self) -> None:
        """Undo the open transaction, if there is one. Never raises: what cannot be undone is, when the session ends."""
        connection = self.connection
        try:
            if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                self.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()

    def close(self) -> None:
        """End it. Never raises."""
        self.connection.close()


@lru_cache(maxsize=256)
def _native(sql: str) -> bytes:
    """Return a statement with the server's own placeholders: `?` and `?1` become `$1`."""
    count = 0

    def numbered(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"${found[1] or count}"

    return re.sub(r"\?(\d*)", numbered, sql).encode()
