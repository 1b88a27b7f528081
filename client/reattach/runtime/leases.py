"""The leases of one engine: taken, renewed until they are given back, and told of when somebody else has them.

A lease says who may write a run's events (consumer "") or move a consumer's mark; what it is worth is the store's to know. Nothing
here may leave one behind that nobody uses: a caller who is cancelled, a reader that was collected, a disk that is full for now.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
import uuid
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from reattach.runtime.clock import sleep
from reattach.runtime.consumption import Handed
from reattach.runtime.loop import settled
from reattach.stores.base import Busy, Lease
from reattach.stores.leases import current_holder

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine

LEASE = 15.0
RENEW = 5.0
"""Seconds: a holder that is not seen for three renewals is replaced elsewhere; on its own host at once when it is dead."""
Whose = tuple[int, str]
"""A run's number and a consumer."""


class Leases:
    """What one engine holds.

    Args:
        engine: The client at work.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._holder = current_holder(uuid.uuid4().hex[:12])
        self._held: dict[Whose, Lease] = {}
        self._leaving: dict[Whose, anyio.Event] = {}
        self._owed: dict[Whose, Lease] = {}  # could not be given back; nobody here uses them any more
        self.abandoned: dict[Whose, Callable[[], Awaitable[None]]] = {}
        """Those whose reader was collected, and how to give them back; whoever takes such a lease next does that first."""
        self.shown: dict[Whose, Handed] = {}
        """What consumers that left had been handed."""
        self._alone: weakref.WeakValueDictionary[Whose, anyio.Lock] = weakref.WeakValueDictionary()

    def alone(self, run: int, consumer: str) -> anyio.Lock:
        """Return what is held while a consumer begins to read, or confirms after its loop: each for a moment takes the lease.

        Two such tasks of one client must not find the run busy with each other.
        """
        lock = self._alone.get((run, consumer))
        if lock is None:
            lock = self._alone[run, consumer] = anyio.Lock()
        return lock

    async def take(self, run: int, consumer: str) -> Lease | Busy:
        """Take a lease; it is renewed until it is given back. Cancelled, none stays behind."""
        engine, whose = self._engine, (run, consumer)
        forgotten = self.abandoned.pop(whose, None)
        if forgotten is not None:
            await forgotten()
        before = self._leaving.get(whose)
        if before is not None:
            await before.wait()
        owed = self._owed.get(whose)

        def taking() -> Lease | Busy:
            if owed is not None:
                engine.store.release(owed)
            return engine.store.lease(run, consumer, self._holder, LEASE)

        work = engine.writer.post(taking)
        try:
            lease = await settled(work, engine.soon)
        except BaseException:
            work.add_done_callback(self._undo)
            raise
        if self._owed.get(whose) is owed:
            self._owed.pop(whose, None)
        if isinstance(lease, Lease):
            self._held[whose] = lease
        return lease

    def _undo(self, work: concurrent.futures.Future[Lease | Busy]) -> None:
        """Give back a lease that nobody waits for any more. On the writer's thread, or anywhere."""
        lease = None if work.cancelled() or work.exception() is not None else work.result()
        if not isinstance(lease, Lease):
            return
        engine = self._engine
        if threading.get_ident() == engine.writer.ident:
            with contextlib.suppress(Exception):  # it runs out by itself
                engine.store.release(lease)
        else:
            engine.writer.post(lambda: engine.store.release(lease))

    async def give_back(self, lease: Lease) -> None:
        """Give a lease back. Never raises: one that cannot be given back now runs out, or is given back when it is taken again."""
        whose = (lease.run, lease.consumer)
        if self._held.get(whose) == lease:
            del self._held[whose]
        over = self._leaving[whose] = anyio.Event()
        try:
            with anyio.CancelScope(shield=True):
                await self._engine.post(lambda: self._engine.store.release(lease))
        except Exception:
            self._owed[whose] = (
                lease  # a full disk; once there is room, the next loop must not find the run busy with us
            )
        finally:
            if self._leaving.get(whose) is over:
                del self._leaving[whose]
            over.set()

    async def give_all_back(self) -> None:
        """The engine closes."""
        leases = list(self._held.values())
        self._held.clear()
        for lease in leases:
            with contextlib.suppress(Exception):  # a full disk, say: it runs out by itself
                await self._engine.post(lambda lease=lease: self._engine.store.release(lease))  # type: ignore[misc]  # bound now

    def holds(self, lease: Lease) -> bool:
        """Whether a lease is still ours, as far as we know."""
        return self._held.get((lease.run, lease.consumer)) == lease

    async def keep(self) -> None:
        """Renew what is held, for ever; who lost the right to write a run's events is told."""
        engine = self._engine
        while True:
            await sleep(engine.clock, RENEW)
            held = list(self._held.values())
            if not held:
                continue
            try:
                lost = await engine.post(lambda held=held: engine.store.renew(held, LEASE))  # type: ignore[misc]  # bound now
            except Exception as error:
                engine.tell("", "lease", f"could not be renewed: {error}")
                continue
            for lease in lost:
                if self._held.pop((lease.run, lease.consumer), None) is None:
                    continue
                engine.tell("", "lease", f"lost to another holder, as consumer {lease.consumer!r}")
                followed = engine.following(lease.run)
                if lease.consumer == "" and followed is not None:
                    followed.lost_lease()
