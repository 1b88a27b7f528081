"""One run that somebody follows in this process: as its writer, or by looking on while another process writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from reattach import errors
from reattach.core.messages import Attached, Known, LeaseLost
from reattach.model import Connection, Event, OnGap
from reattach.runtime import places
from reattach.runtime.failures import of_fault
from reattach.runtime.feed import End, Feed
from reattach.runtime.subscription import KNOWN, Subscription
from reattach.stores.base import Lease, RunRow
from reattach.stores.entry import event_of, outcome_of

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine

LOOK = 0.1
"""Seconds between two looks at a journal that another process writes."""
LOOKS_A_HOLDER = 5  # so often we look whether that process still lives


class Followed:
    """One run that somebody follows: as its writer, or by looking on while another process writes."""

    def __init__(self, engine: Engine, run: int, on_gap: OnGap) -> None:
        self.engine = engine
        self.run = run
        self.on_gap = on_gap
        self.feed = Feed(engine.policy.max_buffered_events)
        self.readers = 0
        self.leaving = False
        self.superseded = False
        """Another one takes its place at once, since a consumer needs what is not in memory any more: follow again."""
        self._lease: Lease | None = None
        self._subscription: Subscription | None = None
        self._wake = anyio.Event()
        self._over = anyio.Event()

    def leave(self) -> None:
        """One reader fewer; with the last one, following ends."""
        self.readers -= 1
        if self.readers <= 0:
            self.stop()

    def stop(self) -> None:
        """Stop following; what is in flight settles."""
        if not self.leaving:
            self.leaving = True
            self._wake.set()
            if self._subscription is not None:
                self._subscription.close()
            self.feed.finish(End(None, errors.Closed("this run is no longer followed.", hint="Iterate it again.")))

    async def supersede(self) -> None:
        """Stop, so that the run is followed anew from its applied mark; who waits goes on with the next one."""
        self.superseded = True
        self.stop()
        await self.wait_settled()

    def fail(self, error: Exception) -> None:
        """A fault of ours: say so to who waits."""
        self.feed.finish(End(None, of_fault(error, self.engine.store.name)))
        self.leaving = True
        self._wake.set()
        if self._subscription is not None:
            self._subscription.settled.set()

    def woke(self) -> None:
        """The machine slept, or its clock was put forward."""
        if self._subscription is not None:
            self._subscription.woke()

    def lost_lease(self) -> None:
        """Another process owns the run now."""
        if self._subscription is not None:
            self._subscription.tell(LeaseLost("the lease ran out and was taken"))

    async def wait_settled(self) -> None:
        """Wait until nothing of it is in flight."""
        await self._over.wait()

    async def run_to_the_end(self) -> None:
        """Follow until the run's end, a failure, or `stop`."""
        try:
            await self._acquire()
            if self._subscription is not None:
                await self._subscription.settled.wait()
        except errors.ReattachError as error:
            self.feed.finish(End(None, error))
        except KeyError:  # another reader of this journal learnt it, and the row was only a name
            self.feed.finish(
                End(None, errors.NotFound("the server knows no such run; the journal holds none of its events."))
            )
        except Exception as error:
            self.feed.finish(End(None, of_fault(error, self.engine.store.name)))
        finally:
            with anyio.CancelScope(shield=True):
                self.leaving = True
                if self._lease is not None:
                    await self.engine.leases.give_back(self._lease)
                if self.feed.end is not None and isinstance(self.feed.end.error, errors.NotFound):
                    await self.engine.forget(self.run)
                self.engine.left(self)
                self._over.set()

    async def _acquire(self) -> None:
        """Become the writer and begin; look on as long as another process is."""
        engine = self.engine
        while not self.leaving:
            row = await engine.post(lambda: engine.store.row(self.run))
            self.feed.bare = engine.bare or await engine.post(lambda: places.is_bare(engine.store, self.run))
            if row.outcome is not None and not (self.feed.bare and await self._owes(row)):
                await self._begin(row, None)
                return
            lease = await engine.leases.take(self.run, "")
            if isinstance(lease, Lease):
                self._lease = lease
                row = await engine.post(lambda: engine.store.row(self.run))  # what the last owner wrote before us
                await self._begin(row, lease)
                return
            await self._look_on()

    async def _owes(self, row: RunRow) -> bool:
        return await self.engine.post(lambda: places.owes(self.engine.store, row))

    async def _rewound(self, row: RunRow, lease: Lease) -> RunRow:
        """With keep="cursor": let the journal stand at the applied mark again; what is behind it comes from the server."""
        store, profile = self.engine.store, self.engine.profile

        def work() -> RunRow:
            return store.rewind(lease, places.applied_mark(store, profile, row)) if places.owes(store, row) else row

        return await self.engine.post(work)

    async def _begin(self, row: RunRow, lease: Lease | None) -> None:
        engine = self.engine
        run_id = row.run_id or ""
        if self.feed.bare:
            ended = row.outcome if lease is None else None
            if lease is not None:
                row = await self._rewound(row, lease)
            self._follow(row, lease, [], (), ended)
            return
        entries = await engine.post(lambda: engine.store.newest(self.run, KNOWN))
        known = [event_of(entry.element, run_id, entry.position) for entry in entries]
        identities = tuple(
            (
                entry.element.get("sequence"),
                entry.element.get("dedupe", entry.element["id"]),
                bytes.fromhex(entry.element.get("digest", "")),
            )
            for entry in entries
            if "gap" not in entry.element
        )
        self._follow(row, lease, known, identities, row.outcome)

    def _follow(
        self, row: RunRow, lease: Lease | None, known: list[Event], identities: Known, ended: str | None
    ) -> None:
        if self.leaving:
            return
        engine = self.engine
        run_id = row.run_id or ""
        if known:
            self.feed.keep(run_id, known[0].position, known)
        outcome = None if ended is None else outcome_of(ended, run_id)
        subscription = Subscription(engine, row, lease, self.feed, self.on_gap)
        self._subscription = subscription
        # A row that was only adopted by its id says nothing about the server; one with a key, a status or an event does.
        before = row.key is not None or row.status not in ("", "unknown") or row.committed.position > 0
        subscription.begin(known, Attached(row.committed, identities, outcome, before))

    async def _look_on(self) -> None:
        """Read what another process writes, until it lets go or the run has ended."""
        engine = self.engine
        self.feed.show(Connection(phase="following"))
        engine.tell("", "lease", "another process follows this run; reading what it writes")
        seen = -1
        looks = 0
        while not self.leaving:
            changed = await engine.post(engine.store.changed)
            if changed != seen or not engine.store.shared:
                seen = changed
                row = await engine.post(lambda: engine.store.row(self.run))
                self.feed.deliver(row.committed.position)
                if row.outcome is not None:
                    return
            looks += 1
            if looks % LOOKS_A_HOLDER == 0 and await engine.post(lambda: engine.store.holder(self.run, "")) is None:
                return
            await self._pause(LOOK)

    async def _pause(self, seconds: float) -> None:
        """Wait for so many of the clock's seconds, or until we stop."""
        if self.leaving:
            return
        self._wake = anyio.Event()
        alarm = self.engine.clock.call_at(self.engine.clock.now() + seconds, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            alarm.cancel()
