"""The asynchronous face's AsyncTransaction: the same names as `transaction.py`, awaited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar

import anyio

from reattach.model import Event
from reattach.runtime import confirming
from reattach.runtime.consumption import Consumption
from reattach.runtime.engine import Engine
from reattach.runtime.handle import Handle
from reattach.runtime.loop import settled, settled_through
from reattach.runtime.turn import Turn

T = TypeVar("T")


class AsyncTransaction:
    """The user's transaction; see `Transaction`.

    Attributes:
        event: The event that leaving the block confirms.
    """

    def __init__(self, turn: Turn, event: Event, engine: Engine) -> None:
        self._turn = turn
        self._engine = engine
        self.event = event

    async def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows; see `Transaction.execute`."""
        return await settled(self._turn.execute(sql, parameters), self._engine.soon)

    async def call(self, function: Callable[[Any], T]) -> T:
        """Return `function(connection)`, run on the transaction's thread with the driver's connection."""
        return await settled(self._turn.call(function), self._engine.soon)


class AsyncEntering(AbstractAsyncContextManager[AsyncTransaction]):
    """Enters and leaves the transaction of the event in hand.

    Args:
        handle: Gives the run's handle.
    """

    def __init__(self, handle: Callable[[], Handle]) -> None:
        self._handle = handle
        self._entered: tuple[Handle, Turn, Consumption, Event, int] | None = None

    async def __aenter__(self) -> AsyncTransaction:
        handle = self._handle()
        turn, reading, event = confirming.turn(handle)
        owner = anyio.get_current_task().id
        handle.engine.enter_turn(turn, owner)
        self._entered = handle, turn, reading, event, owner
        return AsyncTransaction(turn, event, handle.engine)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._entered is not None
        handle, turn, reading, event, owner = self._entered
        try:
            reading.repeat()  # unless it is committed
            soon = handle.engine.soon
            if kind is not None:
                # Half left is worse than late: the writer waits for this turn.
                await settled_through(turn.rollback(), soon)
                return
            committed = turn.commit()
            try:
                await settled_through(committed, soon)
            finally:
                if committed.exception() is None:
                    reading.confirmed(event.position, event.cursor)
        finally:
            handle.engine.leave_turn(owner)
