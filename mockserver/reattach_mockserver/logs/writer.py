"""One thread that owns the writing connection: gathers what is asked for, commits it in one transaction, then answers.

Group commit: while one transaction is being made durable, the next gathers; so many writers share one fsync, and each
is answered only after the transaction that holds its work is durable. A piece of work that is refused is rolled back
alone (a savepoint each). If the commit itself fails its outcome is not known: everybody in it is told so
(`LogUnavailable`), and the connection is opened anew and reads what is there.

Knows no table. Checked by tests/mockserver/test_sqlite_log.py.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from reattach_mockserver.logs.base import LogUnavailable

T = TypeVar("T")

Work: TypeAlias = Callable[[sqlite3.Connection], Any]

_GATHER = 512  # pieces of work in one transaction


class Writer:
    """A writing connection and its thread.

    Args:
        connect: Opens the connection, in autocommit mode; called in the thread, again after an indefinite failure.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._work: queue.SimpleQueue[tuple[Work, asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="reattach log writer", daemon=True)
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._thread.start()

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do work inside a transaction; return what it returned once that is durable.

        Raises:
            LogError: What the work raised; nothing of it was written.
            LogUnavailable: The storage failed; the work may have been written.
        """
        if self._closed:
            raise LogUnavailable("the log is closed")
        future: asyncio.Future[Any] = self._loop.create_future()
        # Who asked may be gone when the answer comes: an error that nobody fetches is no event of the loop's.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._work.put((work, future))
        # Shielded: the transaction goes on whether or not somebody still waits for it.
        result: T = await asyncio.shield(future)
        return result

    async def close(self) -> None:
        """Finish what was asked for, close the connection, end the thread."""
        self._closed = True
        self._work.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        ending = False
        while not ending:
            first = self._work.get()
            group = [] if first is None else [first]
            ending = first is None
            while not ending and len(group) < _GATHER:
                try:
                    item = self._work.get_nowait()
                except queue.Empty:
                    break
                if item is None:
                    ending = True
                else:
                    group.append(item)
            if group:
                self._commit(group)
        if self._connection is not None:
            self._connection.close()

    def _commit(self, group: list[tuple[Work, asyncio.Future[Any]]]) -> None:
        answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []
        try:
            if self._connection is None:
                self._connection = self._connect()
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            for work, future in group:
                answers.append((future, *_attempt(connection, work)))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._abandon()
            failure = LogUnavailable(str(error))
            failure.__cause__ = error
            answers = [(future, None, failure) for _, future in group]
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_settle, answers)

    def _abandon(self) -> None:
        """Let go of a connection whose state is not known; the next piece of work opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error:
                return  # it could not even close; there is nothing left to ask of it


def _attempt(connection: sqlite3.Connection, work: Work) -> tuple[Any, BaseException | None]:
    connection.execute("SAVEPOINT piece")
    try:
        result = work(connection)
    except sqlite3.Error:
        raise  # the storage's failure concerns the whole transaction
    except Exception as error:
        connection.execute("ROLLBACK TO piece")
        connection.execute("RELEASE piece")
        return None, error
    connection.execute("RELEASE piece")
    return result, None


def _settle(answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for future, result, error in answers:
        if future.cancelled():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
