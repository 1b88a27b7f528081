"""One process of a schedule: its door to the journal that outlives it. It can die at any moment.

What a process had queued when it died may have reached the disk or not: `die` takes how much of it did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reattach.stores.base import Busy, Entry, Holder, Lease, Refusal, StoreFailed, Write
from reattach.stores.memory import MemoryStore
from reattach.testing import LateWriter


class Disk:
    """What outlives every process: the journal's content, and who is dead.

    Args:
        wall: The wall clock, in seconds.
        failures: The commits that find it full, counted from 1.
    """

    def __init__(self, wall: Callable[[], float], failures: frozenset[int]) -> None:
        self.dead: set[str] = set()
        self.journal = MemoryStore(wall=wall, alive=lambda holder: holder.client not in self.dead)
        self.commits = 0
        self.failed = 0
        self._failures = failures
        self.now = wall
        self.moved_at = -1.0
        self.before: set[str | None] = set()
        """The cursors that were durable at the beginning of, and during, the instant `moved_at`."""

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        """Commit, or find the disk full."""
        self.commits += 1
        now = self.now()
        if now != self.moved_at:
            self.moved_at, self.before = now, set()
        self.before.add(self.cursor)
        if self.commits in self._failures:
            self.failed += 1
            raise StoreFailed("no space left on device")
        return self.journal.commit(writes)

    @property
    def cursor(self) -> str | None:
        """The durable cursor of the only run."""
        rows = self.journal.rows()
        return rows[0].committed.cursor if rows else None

    @property
    def committed(self) -> int:
        """The durable position of the only run."""
        rows = self.journal.rows()
        return rows[0].committed.position if rows else 0

    @property
    def applied(self) -> int:
        """The durable applied mark of the only run."""
        rows = self.journal.rows()
        return self.journal.applied(rows[0].run, "main") if rows else 0


class Process:
    """A store (its own door to the disk) of one process.

    Args:
        disk: The disk.
        noted: Told every automatic mark before it is kept.
        consuming: Told whenever a consumer begins to read.
        beyond: Told when somebody reads where nothing is.
    """

    name = "runs.db"
    shared = False

    def __init__(
        self, disk: Disk, noted: Callable[[int], None], consuming: Callable[[], None], beyond: Callable[[int], None]
    ) -> None:
        self._disk = disk
        self._noted = noted
        self._consuming = consuming
        self._beyond = beyond
        self._clients: set[str] = set()
        self.alive = True
        self.writer: LateWriter | None = None

    def die(self, reached: int) -> None:
        """Be killed now; so many queued writes still reach the disk."""
        if self.alive:
            if self.writer is not None:
                self.writer.finish(reached)
            self.alive = False
            self._disk.dead |= self._clients
            if self.writer is not None:
                self.writer.drop()

    # what differs in a dead process -----------------------------------------------------------------------------------

    def open(self) -> None:
        """The content is there."""

    def close(self) -> None:
        """The content stays."""

    def commit(self, writes: Sequence[Write]) -> list[Refusal | None]:
        """Commit."""
        self._check()
        return self._disk.commit(writes)

    def read(self, run: int, after: int, limit: int) -> list[Entry]:
        """Read; nobody is told that there is something before it is durable."""
        self._check()
        found = self._disk.journal.read(run, after, limit)
        if not found:
            self._beyond(after)
        return found

    def lease(self, run: int, consumer: str, holder: Holder, seconds: float) -> Lease | Busy:
        """Take a lease, and remember under which name."""
        self._check()
        self._clients.add(holder.client)
        if consumer:
            self._consuming()
        return self._disk.journal.lease(run, consumer, holder, seconds)

    def note(self, lease: Lease, position: int) -> None:
        """Note a mark; a dead process notes nothing."""
        if self.alive:
            self._noted(position)
            self._disk.journal.note(lease, position)

    def release(self, lease: Lease) -> None:
        """Give back; a dead process gives nothing back."""
        if self.alive:
            self._disk.journal.release(lease)

    def carry(self) -> None:
        """Marks are kept at once here."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._disk.journal, name)

        def call(*args: Any, **named: Any) -> Any:
            self._check()
            return method(*args, **named)

        self.__dict__[name] = call
        return call

    def _check(self) -> None:
        if not self.alive:
            raise StoreFailed("this process is dead")
