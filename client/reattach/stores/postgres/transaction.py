"""A user's own transaction on the journal's database: their rows and "this event is done" become durable together.

It has a session of its own, so that the journal's own commits go on beside it. What would end it is refused before it is sent where
it can be seen, and found by the transaction's number at the end where not (SQL inside a procedure's text, say); what touched the
journal's tables is found at the end by the locks it took, those of triggers and of an ORM, too. Errors of the user's SQL pass
unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row
from psycopg.sql import Composable

from reattach.stores.base import ForbiddenSql
from reattach.stores.postgres.session import Connection, Session

T = TypeVar("T")

_COMMENTS = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_ENDING = re.compile(
    rf"{_COMMENTS}(commit|end|abort|begin|start\s+transaction|prepare\s+transaction|rollback(?!(\s+(work|transaction))?\s+to\b))\b",
    re.IGNORECASE | re.DOTALL,
)
_SEVERAL = re.compile(rf";{_COMMENTS}[^\s;]", re.DOTALL)
_OVER = "this transaction is over"


class TurnConnection(Connection):
    """The connection that a user's function gets. While `turn` it is theirs, but for its end."""

    turn = False

    def commit(self) -> None:
        """Refuse it."""
        self._refuse("commit")
        super().commit()

    def rollback(self) -> None:
        """Refuse it."""
        self._refuse("roll back")
        super().rollback()

    def close(self) -> None:
        """Refuse it."""
        self._refuse("close")
        super().close()

    def _refuse(self, what: str) -> None:
        if self.turn:
            raise ForbiddenSql(f"this would {what} what the end of the block does")


class TurnCursor(psycopg.Cursor[tuple[Any, ...]]):
    """A cursor that sends nothing which would end the transaction."""

    def execute(
        self, query: Any, params: Any = None, *, prepare: bool | None = None, binary: bool | None = None
    ) -> Any:
        """See the driver's."""
        if self._judge(query) and not params and prepare is None:
            prepare = True  # the server then takes one statement only
        return super().execute(query, params, prepare=prepare, binary=binary)

    def executemany(self, query: Any, params_seq: Iterable[Any], *, returning: bool = False) -> None:
        """See the driver's."""
        self._judge(query)
        super().executemany(query, params_seq, returning=returning)

    def _judge(self, query: Any) -> bool:
        """Return whether it may be several statements; refuse one that would end the transaction."""
        text = query.as_string(self.connection) if isinstance(query, Composable) else query
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        found = _ENDING.match(text)
        if found and getattr(self.connection, "turn", False):
            raise ForbiddenSql(f"{found[1].upper()} would begin or end a transaction, which the block does")
        return _SEVERAL.search(text) is not None


TurnConnection.cursors = TurnCursor


class PostgresTransaction:
    """See `base.Transaction`.

    Args:
        session: Inside a transaction that was begun, of a `TurnConnection`.
        finish: Called once: with the position to write the mark and commit, with None to roll back.
        away: What it means that the connection was lost.
    """

    def __init__(
        self, session: Session, finish: Callable[[int | None], None], away: Callable[[BaseException], Exception]
    ) -> None:
        assert isinstance(session.connection, TurnConnection)
        self._connection = session.connection
        self._finish = finish
        self._away = away
        self._open = True
        self._connection.turn = True

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """See `Transaction.execute`; placeholders are the driver's, `%s` and `%(name)s`."""

        def work() -> list[tuple[Any, ...]]:
            cursor = self._connection.cursor()
            cursor.execute(sql, parameters or None)
            return cursor.fetchall() if cursor.description is not None else []

        return self._guarded(work)

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
        connection = self._connection
        connection.turn = False
        connection.row_factory, connection.cursor_factory = tuple_row, TurnCursor  # what it set is not for the next one
        self._finish(position)

    def _guarded(self, work: Callable[[], T]) -> T:
        if not self._open:
            raise ForbiddenSql(_OVER)
        try:
            return work()
        except ForbiddenSql:
            raise
        except Exception as error:
            if self._connection.closed:
                raise self._away(error) from error
            raise
