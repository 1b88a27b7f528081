"""The writer's turn, held by a user's transaction: their statements run on the writer's thread, in one database transaction.

Nothing is taken before the first statement. While it is held, commits only gather, so it has a limit: after 60 s it is rolled
back, and the next statement says so. Who waits for the writer meanwhile never fails for it. A journal that gives transactions
sessions of their own (PostgreSQL) needs no turn: they run in a thread `apart`, under the same limit.
"""

from __future__ import annotations

import concurrent.futures
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from reattach import errors
from reattach.runtime.failures import of_fault
from reattach.stores.base import ForbiddenSql, Lease, LeaseGone, StoreDamaged, StoreFailed, Transaction
from reattach.stores.base import Store as StoreType

if TYPE_CHECKING:
    from reattach.runtime.apart import Turns

T = TypeVar("T")
LIMIT = 60.0
"""Seconds that a transaction may stay open."""


class Turn:
    """One user's transaction.

    Args:
        turns: Where it runs: the writer, or apart.
        store: The journal.
        lease: The consumer's, whose mark it moves.
        position: Of the event in hand, which it confirms.
        expected: The mark before; asked for on the writer's thread, since other threads may `ack` until then.
        limit: Seconds until it is rolled back.
    """

    def __init__(
        self,
        turns: Turns,
        store: StoreType,
        lease: Lease,
        position: int,
        expected: Callable[[], int],
        limit: float = LIMIT,
    ) -> None:
        self._turns = turns
        self._store = store
        self._lease = lease
        self._position = position
        self._expected = expected
        self._limit = limit
        self._work: queue.SimpleQueue[Callable[[Transaction | None], bool]] = queue.SimpleQueue()
        self._served: concurrent.futures.Future[None] | None = None
        self._abandoned = False
        self._lock = threading.Lock()

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
        """Undo everything; nothing at all if nothing was begun, or if it is undone already. Its future never fails."""
        done: concurrent.futures.Future[None] = concurrent.futures.Future()
        if self._served is None:
            done.set_result(None)
        else:
            undone = self._do(lambda transaction: transaction.rollback(), last=True)
            undone.add_done_callback(lambda _: done.set_result(None))
        return done

    def abandon(self) -> None:
        """The client is closing: undo everything, now; whoever goes on with it gets `Closed`. From any thread."""
        with self._lock:
            self._abandoned = True
        self.rollback()

    @property
    def served(self) -> concurrent.futures.Future[None] | None:
        """Done when nothing of it runs any more; None: nothing ever did."""
        return self._served

    def _do(self, function: Callable[[Transaction], T], *, last: bool = False) -> concurrent.futures.Future[T]:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work(transaction: Transaction | None) -> bool:
            """Do it, on the writer's thread; True ends the turn. Without a transaction: the turn is over, say why."""
            try:
                if transaction is None:
                    raise self._over()
                result = function(transaction)
            except (ForbiddenSql, LeaseGone, StoreFailed, StoreDamaged) as error:
                future.set_exception(self._named(error))
            except BaseException as error:
                future.set_exception(error)  # one of ours, or what the user's own SQL or function raised
            else:
                future.set_result(result)
            return last

        with self._lock:
            if self._served is None and not self._abandoned:
                self._work.put(work)
                self._served = self._turns.post(self._serve)
                self._served.add_done_callback(self._drain)
                return future
        if self._served is None or self._served.done():
            work(None)
            return future
        self._work.put(work)
        if self._served.done():
            self._drain(self._served)
        return future

    def _serve(self) -> None:
        """On the writer's thread, or apart: begin, do what comes, end."""
        transaction = self._store.begin(self._lease, expected=self._expected())
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
        while True:
            try:
                work = self._work.get_nowait()
            except queue.Empty:
                return
            work(None)

    def _over(self) -> errors.ReattachError:
        """Return why nothing more can be done in this turn."""
        error = self._served.exception() if self._served is not None and self._served.done() else None
        if error is not None:
            return self._named(error)
        if self._abandoned:
            return errors.Closed(
                "the client was closed; the transaction was rolled back.",
                hint="The event comes again to a new client on the same journal.",
            )
        return errors.UsageError("this transaction is over.", hint="Enter run.transaction() again for the next event.")

    def _named(self, error: BaseException) -> errors.ReattachError:
        match error:
            case ForbiddenSql():
                return errors.UsageError(
                    f"{error}.",
                    hint="Leave the with block to end the transaction; use tables of your own, whose names do not start "
                    "with reattach_.",
                )
            case LeaseGone():
                return errors.LeaseLost(
                    f"the transaction was rolled back: another process took the run over ({error}).",
                    hint="Nothing of it was kept; the other process sees the event.",
                )
            case NotImplementedError():
                return errors.UsageError(
                    f"no transaction here: {error}.", hint='Use a SQLite journal, such as "runs.db".'
                )
            case _:
                return of_fault(error, self._store.name)
