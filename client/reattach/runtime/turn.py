"""The writer's turn, held by a user's transaction: their statements run on the writer's thread, in one database transaction.

Nothing is taken before the first statement. While it is held, commits only gather, so it has a limit: after 60 s it is rolled
back, and the next statement says so. Who waits for the writer meanwhile never fails for it.
"""

from __future__ import annotations

import concurrent.futures
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from reattach import errors
from reattach.stores.base import ForbiddenSql, Lease, LeaseGone, Transaction
from reattach.stores.base import Store as StoreType

if TYPE_CHECKING:
    from reattach.runtime.writer import Writer

T = TypeVar("T")
LIMIT = 60.0
"""Seconds that a transaction may stay open."""


class Turn:
    """One user's transaction.

    Args:
        writer: Whose turn it is.
        store: The journal.
        lease: The consumer's, whose mark it moves.
        position: Of the event in hand, which it confirms.
        expected: The mark before.
        limit: Seconds until it is rolled back.
    """

    def __init__(
        self, writer: Writer, store: StoreType, lease: Lease, position: int, expected: int, limit: float = LIMIT
    ) -> None:
        self._writer = writer
        self._store = store
        self._lease = lease
        self._position = position
        self._expected = expected
        self._limit = limit
        self._work: queue.SimpleQueue[Callable[[Transaction], bool]] = queue.SimpleQueue()
        self._served: concurrent.futures.Future[None] | None = None

    def execute(
        self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]
    ) -> concurrent.futures.Future[list[tuple[Any, ...]]]:
        """Run one statement."""
        return self._do(lambda transaction: transaction.execute(sql, parameters))

    def call(self, function: Callable[[Any], T]) -> concurrent.futures.Future[T]:
        """Run a function with the driver's connection."""
        return self._do(lambda transaction: transaction.call(function))

    def commit(self) -> concurrent.futures.Future[None]:
        """Write the mark and commit, durably."""
        return self._do(lambda transaction: transaction.commit(self._position), last=True)

    def rollback(self) -> concurrent.futures.Future[None]:
        """Undo everything; nothing at all if nothing was begun."""
        if self._served is None:
            done: concurrent.futures.Future[None] = concurrent.futures.Future()
            done.set_result(None)
            return done
        return self._do(lambda transaction: transaction.rollback(), last=True)

    def _do(self, function: Callable[[Transaction], T], *, last: bool = False) -> concurrent.futures.Future[T]:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work(transaction: Transaction) -> bool:
            try:
                result = function(transaction)
            except ForbiddenSql as error:
                future.set_exception(
                    errors.UsageError(
                        f"{error}. The transaction is still open.",
                        hint="Leave the with block to end it; use tables of your own, whose names do not start with reattach_.",
                    )
                )
                return False
            except LeaseGone as error:
                future.set_exception(
                    errors.LeaseLost(
                        f"the transaction was rolled back: another process took the run over ({error}).",
                        hint="Nothing of it was kept; the other process sees the event.",
                    )
                )
                return True
            except BaseException as error:
                future.set_exception(error)
                return last
            future.set_result(result)
            return last

        if self._served is not None and self._served.done():
            self._refuse(future, self._served.exception())
            return future
        self._work.put(work)
        if self._served is None:
            self._served = self._writer.post(self._serve)
            self._served.add_done_callback(self._drain)
        elif self._served.done():
            self._drain(self._served)
        return future

    def _serve(self) -> None:
        """On the writer's thread: begin, do what comes, end."""
        transaction = self._store.begin(self._lease, expected=self._expected)
        deadline = time.monotonic() + self._limit
        while True:
            try:
                work = self._work.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                transaction.rollback()
                raise errors.StoreBusy(
                    f"the transaction was open for {self._limit:g} s and was rolled back: nothing else could be written "
                    "meanwhile.",
                    hint="Do slow work before you enter it; the event comes again.",
                ) from None
            if work(transaction):
                transaction.rollback()  # nothing, after a commit
                return

    def _drain(self, served: concurrent.futures.Future[None]) -> None:
        """Whatever is queued when the turn is over learns why."""
        error = served.exception()
        while True:
            try:
                work = self._work.get_nowait()
            except queue.Empty:
                return
            work(_Over(error))

    @staticmethod
    def _refuse(future: concurrent.futures.Future[Any], error: BaseException | None) -> None:
        future.set_exception(_over(error))


class _Over:
    """In place of a transaction that is over: every call says why."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Raise."""
        raise _over(self._error)

    def call(self, function: Callable[[Any], T]) -> T:
        """Raise."""
        raise _over(self._error)

    def commit(self, position: int) -> None:
        """Raise."""
        raise _over(self._error)

    def rollback(self) -> None:
        """Do nothing: it was."""


def _over(error: BaseException | None) -> BaseException:
    match error:
        case None:
            return errors.UsageError(
                "this transaction is over.", hint="Enter run.transaction() again for the next event."
            )
        case LeaseGone():
            return errors.LeaseLost(
                f"the transaction could not begin: another process took the run over ({error}).",
                hint="The other process sees the event.",
            )
        case NotImplementedError():
            return errors.UsageError(f"no transaction here: {error}.", hint='Use a SQLite journal, such as "runs.db".')
        case _:
            return error
