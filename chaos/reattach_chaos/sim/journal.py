"""What a simulated process has instead of a disk of its own: a door that can be shut for ever, and a writer that needs no time.

    process = Process(disk)
    process.die()           # kill -9: whatever it does from now on reaches nothing

As `reattach.testing`'s `MortalStore`, for one thread and without a count of calls: what is not seen here is the journal's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from reattach.testing import Disk, LateWriter
from reattach.testing.seams import Busy, Done, Holder, Lease, Store, StoreFailed, Write

T = TypeVar("T")
_THROUGH = (
    "adopt", "applied", "begin", "carry", "changed", "close", "compact", "consumers", "continuing", "created", "find", "forget",
    "hand_out", "holder", "intend", "need", "newest", "open", "prune", "release", "renew", "rewind", "row", "rows",
)  # fmt: skip
_NOTHING = frozenset({"open", "close", "release", "carry"})
"""What a dead process does not do, without an error: nobody would be told of it."""


def gone() -> StoreFailed:
    """Return what a dead process is told."""
    return StoreFailed("this process is dead")


class Process:
    """One process's store; `Store` in all but what is overridden.

    Args:
        disk: What outlives it.
    """

    def __init__(self, disk: Disk) -> None:
        self.journal = disk.journal
        self.name = disk.journal.name
        self.shared = disk.journal.shared
        self.transactions_apart = disk.journal.transactions_apart
        self.alive = True
        self.writer: LateWriter | None = None
        """A writer whose queue dies with the process."""
        self._disk = disk
        self._clients: set[str] = set()
        for name in _THROUGH:
            setattr(self, name, getattr(disk.journal, name))

    def store(self) -> Store:
        """Return itself as what it is to a client."""
        return cast(Store, self)

    def die(self) -> None:
        """Be killed now."""
        if self.alive:
            self.alive = False
            self._disk.dead |= self._clients
            for name in _THROUGH:
                setattr(self, name, _nothing if name in _NOTHING else _refuse)
            if self.writer is not None:
                self.writer.drop()

    def lease(self, run: int, consumer: str, holder: Holder, seconds: float) -> Lease | Busy:
        """Take a lease, and remember under which name."""
        if not self.alive:
            raise gone()
        self._clients.add(holder.client)
        return self.journal.lease(run, consumer, holder, seconds)


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _refuse(*_: Any, **__: Any) -> Any:
    raise gone()


class Settled(Generic[T]):
    """The future of what is done already."""

    __slots__ = ("_error", "_value")

    def __init__(self, function: Callable[[], T]) -> None:
        self._error: BaseException | None = None
        try:
            self._value = function()
        except BaseException as error:
            self._error = error

    def done(self) -> bool:
        """Return True."""
        return True

    def result(self, timeout: float | None = None) -> T:
        """Return, or raise, what came of it."""
        if self._error is not None:
            raise self._error
        return self._value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what it raised."""
        return self._error

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """Call back at once."""
        callback(self)


class Writer:
    """The way into the journal, at once.

    Args:
        store: The journal.
    """

    ident: int | None = None

    def __init__(self, store: Store) -> None:
        self._store = store

    def commit(self, write: Write, done: Done) -> None:
        """Write, and tell."""
        try:
            (result,) = self._store.commit([write])
        except BaseException as error:
            done(error)
        else:
            done(result)

    def post(self, function: Callable[[], T]) -> Any:
        """Work, and return the future of it."""
        return Settled(function)

    def close(self) -> None:
        """Nothing is queued."""
