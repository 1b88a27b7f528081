"""A user's own transaction on the journal's database: their rows and "this event is done" become durable together.

While it is open an authorizer looks at every statement that SQLite prepares on this connection, also those of triggers and of
an ORM that got the connection. It denies what would end the transaction or touch the journal's tables; all else is the user's.
Errors of the user's SQL pass unchanged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from reattach.stores.base import ForbiddenSql

T = TypeVar("T")

_FREE = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_ENDING = {
    sqlite3.SQLITE_TRANSACTION: "would begin or end a transaction",
    sqlite3.SQLITE_SAVEPOINT: "would begin or end a savepoint",
    sqlite3.SQLITE_ATTACH: "would attach a database",
    sqlite3.SQLITE_DETACH: "would detach a database",
}
_ROWS = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
# With a value these only read (ORMs look at tables with them) or, the last, hold until the end of the transaction.
_ASKING = frozenset(
    {
        "table_info", "table_xinfo", "table_list", "index_info", "index_xinfo", "index_list",
        "foreign_key_list", "foreign_key_check", "defer_foreign_keys",
    }
)  # fmt: skip
_DOING = frozenset({"wal_checkpoint", "optimize", "incremental_vacuum", "shrink_memory"})  # these act without a value

_OVER = "this transaction is over"
_ROLLED_BACK = "a statement before this one rolled the transaction back"


class TurnConnection(sqlite3.Connection):
    """The connection that a user's function gets. While `turn` it is theirs, but for its end."""

    turn = False

    def close(self) -> None:
        """Refuse it while it is lent: an ORM that is done with it would take the journal's only writer along."""
        if self.turn:
            raise ForbiddenSql("this would close what the end of the block does")
        super().close()


class SqliteTransaction:
    """See `base.Transaction`.

    Args:
        connection: The journal's writing connection, inside a transaction that was begun.
        turn: Held while the connection is used, so that no other thread forks meanwhile.
        finish: Called once, after the authorizer is off: with the position to write the mark and commit, with None to roll back.
    """

    def __init__(
        self,
        connection: TurnConnection,
        turn: AbstractContextManager[bool],
        finish: Callable[[int | None], None],
    ) -> None:
        self._connection = connection
        self._turn = turn
        self._finish = finish
        self._denied = ""
        self._open = True
        connection.turn = True
        connection.set_authorizer(self._judge)

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """See `Transaction.execute`."""
        return self._guarded(lambda: self._connection.execute(sql, parameters).fetchall())

    def call(self, function: Callable[[Any], T]) -> T:
        """See `Transaction.call`."""
        return self._guarded(lambda: function(self._connection))

    def commit(self, position: int) -> None:
        """See `Transaction.commit`."""
        if not self._open:
            raise ForbiddenSql(_OVER)
        self._end(position)

    def rollback(self) -> None:
        """See `Transaction.rollback`."""
        if self._open:
            self._end(None)

    def _end(self, position: int | None) -> None:
        self._open = False
        with self._turn:
            connection = self._connection
            connection.turn = False
            connection.set_authorizer(None)
            # What it set is neither for us nor for the next one.
            connection.row_factory, connection.text_factory = None, str
            try:
                self._finish(position)
            finally:
                connection.isolation_level = None  # not before: that would commit

    def _guarded(self, work: Callable[[], T]) -> T:
        self._must_be_open()
        self._denied = ""
        try:
            with self._turn:
                return work()
        except Exception as error:
            # Also where a library made an exception of its own of what SQLite said.
            if self._denied:
                raise ForbiddenSql(self._denied) from error
            raise

    def _must_be_open(self) -> None:
        if not self._open:
            raise ForbiddenSql(_OVER)
        if not self._connection.in_transaction:
            raise ForbiddenSql(_ROLLED_BACK)

    def _judge(
        self, action: int, first: str | None, second: str | None, database: str | None, trigger: str | None
    ) -> int:
        objection = self._objection(action, first or "", second or "")
        self._denied = objection or self._denied
        return sqlite3.SQLITE_DENY if objection else sqlite3.SQLITE_OK

    def _objection(self, action: int, first: str, second: str) -> str:
        if not self._connection.in_transaction:
            # `INSERT OR ROLLBACK` and RAISE(ROLLBACK) are no statements of their own; what follows them would commit by itself.
            return _ROLLED_BACK
        if action in _FREE:
            return ""
        if action in _ENDING:
            return f"this statement {_ENDING[action]}, which the end of the block does"
        if action == sqlite3.SQLITE_PRAGMA:
            name = first.lower()
            harmless = name in _ASKING or (not second and name not in _DOING)
            return "" if harmless else f"PRAGMA {first} would change how the journal works"
        for name in (first,) if action in _ROWS else (first, second):
            if name.lower().startswith("reattach_"):
                return f"{name} is the journal's own; your tables may have any name that does not begin with reattach_"
        return ""
