"""The blocking face's Transaction: the user's SQL and "this event is done", together. `async_transaction.py` is the same, awaited.

Its statements run on the thread that the runtime's `Turn` says; here they are only waited for.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, TypeVar

from reattach.model import Event
from reattach.runtime import confirming
from reattach.runtime.consumption import Consumption
from reattach.runtime.handle import Handle
from reattach.runtime.turn import Turn

T = TypeVar("T")


class Transaction:
    """The user's transaction. Your tables may have any name that does not start with `reattach_`.

    Attributes:
        event: The event that leaving the block confirms.
    """

    def __init__(self, turn: Turn, event: Event) -> None:
        self._turn = turn
        self.event = event

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows. What your SQL raises passes as the driver raised it.

        Placeholders are the driver's: `?` and `:name` for SQLite, `%s` and `%(name)s` for PostgreSQL, which keeps nothing of a
        transaction after a statement that failed, unless you set a savepoint before it.

        Raises:
            UsageError: It would end the transaction or touch the journal's own tables.
            StoreBusy: The transaction was open for 60 s and was rolled back.
        """
        return self._turn.execute(sql, parameters).result()

    def call(self, function: Callable[[Any], T]) -> T:
        """Return `function(connection)`, run on the transaction's thread with the driver's connection; for an ORM's session."""
        return self._turn.call(function).result()


class Entering(AbstractContextManager[Transaction]):
    """Enters and leaves the transaction of the event in hand.

    Args:
        handle: Gives the run's handle.
    """

    def __init__(self, handle: Callable[[], Handle]) -> None:
        self._handle = handle
        self._entered: tuple[Handle, Turn, Consumption, Event, int] | None = None

    def __enter__(self) -> Transaction:
        handle = self._handle()
        turn, reading, event = confirming.turn(handle)
        owner = threading.get_ident()
        handle.engine.enter_turn(turn, owner)
        self._entered = handle, turn, reading, event, owner
        return Transaction(turn, event)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._entered is not None
        handle, turn, reading, event, owner = self._entered
        try:
            reading.repeat()  # unless it is committed
            if kind is not None:
                turn.rollback().result()
                return
            committed = turn.commit()
            try:
                committed.result()
            finally:
                concurrent.futures.wait([committed])  # interrupted, it is being written all the same
                if committed.exception() is None:
                    reading.confirmed(event.position, event.cursor)
        finally:
            handle.engine.leave_turn(owner)
