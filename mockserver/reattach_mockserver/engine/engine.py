"""The engine: creates runs, plays them, cancels them, restarts; the only owner of a log, its players and its readers.

Faces ask it and never touch a log to write. A run is played by a task of the engine's own, begun at its creation or
when the engine starts, and never by whoever reads it.

Never here: HTTP, tokens, bytes of a transport. Where the rules come from: PROTOCOL, sections 2, 3, 5; the contract,
"Promises of the reference server".
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reattach_mockserver.engine.compaction import Compaction
from reattach_mockserver.engine.creation import Creation
from reattach_mockserver.engine.draft import NewRun
from reattach_mockserver.engine.fold import Folds
from reattach_mockserver.engine.hub import Hub
from reattach_mockserver.engine.identity import Names, RandomNames, SeededNames
from reattach_mockserver.engine.operate import operate
from reattach_mockserver.engine.players import Players
from reattach_mockserver.engine.publisher import Publisher, entry
from reattach_mockserver.engine.replicas import Replicas
from reattach_mockserver.engine.score import limits_for
from reattach_mockserver.engine.server_clock import ServerClock
from reattach_mockserver.engine.turns import Turns
from reattach_mockserver.event import SETTLED, EventTooLarge, Stored
from reattach_mockserver.logs.base import EventLog, LogUnavailable, RunRecord, SessionBusy, WriterLost
from reattach_mockserver.logs.pause import is_expired
from reattach_mockserver.moment import moment
from reattach_mockserver.settings import Limits, Settings

_SETTLE_WITHIN = 10.0  # seconds from a cancel to the run's settling (PROTOCOL, sections 2 and 5)
_SNAPSHOT_KEPT_MS = 60_000


class NotSettledInTime(Exception):
    """A run that was to be cancelled has not settled within the time the protocol allows."""


@dataclass(frozen=True, slots=True)
class Overloaded:
    """Until when, in ms, the server refuses work, and with which status."""

    until: int
    status: int


class Engine:
    """See the module. Methods are called in one event loop, while it is `started`."""

    def __init__(self, settings: Settings) -> None:
        self.clock = ServerClock(settings.now)
        self.now = self.clock.now
        self.settings = settings = replace(settings, now=self.now)
        self.hub = Hub()
        self.turns = Turns()
        self.draining = False
        self.revoked: set[str] = set()
        self._log = settings.log
        self._folds = Folds(self._log)
        self._compaction = Compaction(self._log, self._may_lose)
        self._publisher = Publisher(self._log, self.hub, settings.hooks, self._compaction.trimmed)
        self._names: Names = RandomNames()
        self._creation = Creation(self._log, settings)
        self._overloaded: Overloaded | None = None
        self._replicas = Replicas(self)
        self.players = Players(
            settings, self._publisher, self.clock, partial(operate, self), lost=self._replicas.unplayed
        )
        self._log.listen(self._replicas)
        self._life = asyncio.Lock()
        self._restarting: asyncio.Task[None] | None = None
        self.started = False

    # Life

    @property
    def log(self) -> EventLog:
        """The log, for reading. Writing it is the engine's."""
        return self._log

    async def start(self) -> None:
        """Open the log and go on with every run in it that has not settled. A second call does nothing.

        Raises:
            UnknownScript: Such a run needs a script that this server was not given. Nothing was taken over.
        """
        async with self._life:
            if not self.started:
                await self._open()

    async def _open(self) -> None:
        await self._log.open()
        try:
            await self._go_on()
        except BaseException:
            # Left open, it would keep its lease: what was taken over here nobody would play, and nobody else might.
            await self._let_go()
            await self._log.close()
            raise
        self.started = True

    async def _go_on(self) -> None:
        orphans = await self._log.orphans()
        for run in orphans:
            await self.players.check(run)
        self.revoked = set(await self._log.revoked())
        if self.settings.deterministic:
            self._names = SeededNames(self.settings.seed or 0, (await self._log.counts()).runs)
        for run in orphans:
            with suppress(WriterLost):  # another replica, started at the same time, was first
                await self.adopt(run)
        self._replicas.start()

    async def stop(self) -> None:
        """End every player and let go of the log. The runs go on when an engine starts on it again."""
        async with self._life:
            await self._close()

    async def _close(self) -> None:
        await self._let_go()
        if self.started:
            self.started = False
            await self._log.close()

    async def _let_go(self) -> None:
        await self._replicas.stop()
        if self._restarting is not None and self._restarting is not asyncio.current_task():
            self._restarting.cancel()
            await asyncio.gather(self._restarting, return_exceptions=True)
        await self.players.end()

    async def restart(self) -> None:
        """Do what the death and rebirth of a process would: cut all readers, forget all but the log, go on with it."""
        async with self._life:
            self.hub.cut()
            await self._close()
            self._folds = Folds(self._log)
            self._overloaded = None
            await self._open()

    def drain(self) -> None:
        """Refuse new attaches and creates from now on, and ask all readers to leave."""
        self.draining = True
        self.hub.close("draining")

    # Creating

    async def create(self, new: NewRun) -> tuple[RunRecord, bool]:
        """Create a run, or return the one of this key; it is durable and being played when this returns.

        Returns:
            The run, and whether this call made it.

        Raises:
            UnknownScript: There is no script of this name.
            SessionBusy: The session has a run that has not settled, and `on_active` is to reject.
            NotSettledInTime: That run was to be cancelled and has not settled.
            NotContinued: It is a continuation, and its answers do not fit.
            EventTooLarge: One of its first events would be.
            TooManyRuns: The principal is at its limit.
            LogUnavailable: The storage failed again and again.
        """
        if new.continues is None:
            self.players.playable(new.script)
        try:
            return await self._create(new)
        except LogUnavailable:
            self._replicas.unplayed()  # it may have been written
            raise

    async def _create(self, new: NewRun) -> tuple[RunRecord, bool]:
        try:
            run, made = await self._creation.make(new, self._names)
        except SessionBusy as busy:
            if new.on_active == "reject":
                raise
            await self._settle(busy.run_id, "superseded")
            try:
                run, made = await self._creation.make(new, self._names)
            except SessionBusy as again:
                raise NotSettledInTime(again.run_id) from again
        if made:
            if self.settings.hooks.created is not None:
                await self.settings.hooks.created(run.id, run.last_sequence)
            await self.players.play(await self._log.run(run.id) or run)  # somebody may have cancelled it by now
        return run, made

    async def adopt(self, run: RunRecord) -> None:
        """Take over a run that nobody plays, and play it.

        Raises:
            WriterLost: Another replica was first.
            LogUnavailable: The storage failed; it may be ours.
        """
        taken = await self._log.take_over(run.id, run.writer)
        self.players.drop(run.id)  # it has lost its writer token: what it would still do comes to nothing
        if taken.status not in SETTLED:
            await self.players.play(taken)

    def _may_lose(self, run: RunRecord) -> bool:
        """Tell whether the log may let go of the run's first events."""
        return not self.players.looks_back(run)

    # Reading

    def limits(self, run: RunRecord) -> Limits:
        """Return the limits that hold for this run."""
        return self.limits_for(run.script)

    def limits_for(self, script: str) -> Limits:
        """Return the limits that hold for runs of this script; the server's own if it is not known."""
        return limits_for(self.settings, script)

    async def run(self, run_id: str, principal: str | None = None) -> RunRecord | None:
        """Return the run as it is now, of the principal if one is named; what has become too old is let go of first.

        A run of another is found out before anything is done for it: its absence costs the same work, and asking for it
        changes nothing.
        """
        run = await self._log.run(run_id)
        if run is None or principal not in (None, run.principal):
            return None
        at, wanted = self.now(), run.trim_to
        retention_ms = self.limits(run).retention_ms
        if retention_ms is not None:
            wanted = max(wanted, await self._log.first_since(run_id, at - retention_ms))
        if wanted > run.first_sequence:
            run, before = await self._log.trim(run_id, wanted, at), run
            await self._compaction.trimmed(before, run)
        if run.resolution is None and is_expired(run, at):
            # Seen once it is kept: a clock that is set back brings nothing back to life. It is seen again if it cannot be.
            with suppress(LogUnavailable):
                run = await self._log.resolve(run_id, "expired", at)
        return run

    async def snapshot(self, run: RunRecord) -> tuple[RunRecord, dict[str, Any]]:
        """Return a run and its state at one boundary; the events after it are kept for a minute from now."""
        limits, hooks = self.limits(run), self.settings.hooks
        if limits.retention_events is not None or limits.retention_ms is not None or run.trim_to > 1:
            # Before the fold: what is appended and trimmed between the two would be missing after the snapshot. The
            # pin stops trimming where it stands, and the fold is at that place or later.
            at = self.now()
            run = await self._log.pin(run.id, run.last_sequence, at, at + _SNAPSHOT_KEPT_MS)
        if hooks.pinned is not None:
            await hooks.pinned(run.id, run.last_sequence)
        state = await self._folds.at(run)
        now = await self._log.run(run.id)
        if now is not None and now.epoch != run.epoch:
            return await self.snapshot(now)  # replaced while it was read: the state may be of either
        if hooks.folded is not None:
            await hooks.folded(run.id, state["sequence"])
        return run, state

    def overloaded(self) -> int | None:
        """Return the status with which work is refused at the moment, None if it is not."""
        if self._overloaded is not None and self.now() < self._overloaded.until:
            return self._overloaded.status
        return None

    def overload(self, ms: int, status: int) -> None:
        """Refuse work for a while."""
        self._overloaded = Overloaded(self.now() + ms, status)

    # Acting

    async def cancel(self, run: RunRecord) -> RunRecord:
        """Record that the run is to be cancelled; it settles on its own soon after.

        Nothing happens to a settled run, but that the actions of a paused one come to `cancelled`.
        """
        if run.status in SETTLED:
            return await self._log.resolve(run.id, "cancelled", self.now())
        return await self._cancel(run.id, "requested")

    async def _cancel(self, run_id: str, reason: str) -> RunRecord:
        run = await self._log.ask_cancel(run_id, reason)
        self.players.cancel(run)
        return run

    async def _settle(self, run_id: str, reason: str) -> None:
        run = await self._cancel(run_id, reason)
        with self.hub.watching(run_id, run.principal, stream=False) as watcher:
            try:
                async with asyncio.timeout(_SETTLE_WITHIN):
                    while (now := await self._log.run(run_id)) is not None and now.status not in SETTLED:
                        await watcher.wait(None)
            except TimeoutError:
                raise NotSettledInTime(run_id) from None

    async def new_epoch(self, run_id: str, keep: int | None = None) -> RunRecord:
        """Replace the run's log: a new epoch; `keep` loses the events after that sequence, as a lost tail would."""
        playing = self.players.drop(run_id)
        if playing is not None:
            await asyncio.gather(playing, return_exceptions=True)
        try:
            run = await self._log.renew(run_id, keep)
        except Exception:
            self._replicas.unplayed()  # it is ours still, perhaps under its old epoch
            raise
        self.hub.wake(run_id)
        if run.status not in SETTLED:
            await self.players.play(run)
        return run

    async def expire(self, run_id: str, first: int) -> RunRecord:
        """Let go of the events before `first`, as retention would."""
        run = await self._log.trim(run_id, first, self.now())
        self.hub.wake(run_id)
        return run

    async def revoke(self, token: str) -> None:
        """Let a token, by its digest, be good no more; its principal's others are."""
        self.revoked.add(token)
        await self._log.revoke(token)

    async def publish(
        self, run: RunRecord, name: str, kind: str, data: Any, *, text: str | None = None, release: str | None = None
    ) -> tuple[RunRecord, Stored]:
        """Append an event from outside of what the run plays, as one more of its producers.

        `name` is its own: the same one again appends nothing and finds what was appended.

        Raises:
            RunSettled: The run has settled.
            EventTooLarge: The event would be.
            ValueError: It holds a number that is not finite.
            WriterLost, LogUnavailable: The log was replaced again and again, or failed.
        """
        limits = self.limits(run)
        for again in (True, True, False):
            at = self.now()
            offered = entry(run, f"outside.{name}", kind, data, time=moment(at), at=at, text=text, release=release)
            if offered.size > limits.event_bytes:
                raise EventTooLarge(f"event {kind!r} has {offered.size} bytes, at most {limits.event_bytes} are taken")
            try:
                run, (stored,) = await self._publisher.store(run, [offered], limits.retention_events)
            except WriterLost:
                if not again:
                    raise
                run = await self._log.run(run.id) or run  # a new epoch or a restart came in between
            else:
                return run, stored
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def expire_actions(self, run: RunRecord) -> RunRecord:
        """Let what a paused run waits for expire now, unless it was resolved before."""
        return await self._log.resolve(run.id, "expired", self.now())

    def advance(self, ms: int) -> None:
        """Move the server's clock forward: what waits for a time that has come goes on."""
        self.clock.advance(ms)
        self.players.look_at_the_clock()
        self.hub.wake_all()

    async def restart_from_within(self) -> RunRecord:
        """Restart on behalf of a player, which does not return: it is among those that end."""
        self._restarting = asyncio.create_task(self.restart(), name="restart")
        await asyncio.get_running_loop().create_future()
        raise AssertionError("unreachable: the restart cancels this player")
