"""Plays one run by a plug-in: opens it, gives the work its desk, settles it as the work came out.

The engine treats it as it treats a `Player`. One settling event, whatever the work does: it returns an outcome, raises, is
cancelled, or does not notice a cancel, and then it is ended in time for the run to settle within what the protocol allows.

Never here: what a work does; the seam is `work.py`. Checked by tests/mockserver/test_work.py.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from reattach_mockserver.engine.clock import RunClock
from reattach_mockserver.engine.continuation import Opening
from reattach_mockserver.engine.desk import RunDesk
from reattach_mockserver.engine.inventory import Inventory
from reattach_mockserver.engine.publisher import Publisher, entry, settling
from reattach_mockserver.engine.work import (
    Completed,
    Failed,
    Outcome,
    Paused,
    RunCancelled,
    Work,
    abandon_work,
    release_of_work,
)
from reattach_mockserver.event import Entry, EventTooLarge
from reattach_mockserver.hooks import Hooks
from reattach_mockserver.logs.base import ClaimLost, EventLog, LogUnavailable, RunRecord, RunSettled, WriterLost
from reattach_mockserver.logs.pause import PauseRecord
from reattach_mockserver.moment import ms_of
from reattach_mockserver.settings import Limits

_GRACE = 5.0  # seconds that a cancelled run's work has to come to an end by itself; the run settles within 10

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStage:
    """What a worker needs: its run, the work, its limits and clock, where to append. `openings`: see `player.Stage`."""

    run: RunRecord
    work: Work
    limits: Limits
    clock: RunClock
    log: EventLog
    publisher: Publisher
    hooks: Hooks
    openings: tuple[Opening, ...] = ()


class Worker:
    """One run's work. `play` returns when the run has settled, or is somebody else's."""

    def __init__(self, stage: WorkStage) -> None:
        self._stage = stage
        self._desk = RunDesk(
            stage.run,
            log=stage.log,
            publisher=stage.publisher,
            clock=stage.clock,
            limits=stage.limits,
            reached=stage.hooks.reached,
        )
        self._reason = stage.run.cancel_reason or ""
        self._limit: asyncio.Timeout | None = None
        if stage.run.cancel_reason is not None:
            self._desk.cancelled.set()

    def cancel(self, reason: str) -> None:
        """Tell the work to end; after a while it is ended."""
        if self._desk.cancelled.is_set():
            return
        self._reason = reason
        self._desk.cancelled.set()
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time() + _GRACE)

    async def play(self) -> None:
        """Open the run if it is not open, do its work, settle it.

        Raises:
            LogUnavailable: The log could not be asked or written for long; the run is to be gone on with later.
        """
        try:
            try:
                await self._open()
                await self._settle(await self._work())
            except RunCancelled:
                await self._settle_cancelled()
        except (WriterLost, RunSettled):
            pass  # the run is another's, or it is over: either way nothing is left to do here
        except ClaimLost:
            # As a rule the run is another's, and this is refused. Where it is not, nobody else would settle it.
            with suppress(WriterLost, RunSettled):
                await self._settle(Failed("internal", "an effect was claimed a second time while it was done"))
        except LogUnavailable:
            raise
        except Exception:
            # A run that nobody plays would stand as running for ever: its failure is an event as well.
            _logger.exception("the work of run %s failed", self._stage.run.id)
            with suppress(WriterLost, RunSettled):
                await self._settle(Failed("internal", "the work failed; see the server's log"))

    async def _open(self) -> None:
        stage, played = self._stage, await self._stage.log.steps(self._stage.run.id)
        entries = [
            self._entry(event.step, event.type, event.data, release=event.release)
            for event in stage.openings
            if event.step not in played
        ]
        if "started" not in played:
            entries.append(self._entry("started", "run.started", {}, status="running"))
        release = release_of_work(stage.work)
        current = next((event.release for event in reversed(stage.openings) if event.release), stage.run.release)
        if release is not None and release != current:
            step = f"release.{release}.{stage.run.last_sequence}"
            entries.append(self._entry(step, "release.changed", {"release": release}, release=release))
        if entries:
            await self._desk.append(entries)

    async def _work(self) -> Outcome:
        if self._desk.cancelled.is_set():
            await abandon_work(self._stage.work, self._desk)
            raise RunCancelled
        try:
            async with asyncio.timeout(None) as self._limit:
                return await self._stage.work(self._desk)
        except EventTooLarge as large:
            return Failed("event_too_large", str(large))
        except TimeoutError:
            if self._limit is not None and self._limit.expired():
                raise RunCancelled from None
            raise
        finally:
            self._limit = None

    async def _settle(self, outcome: Outcome) -> None:
        match outcome:
            case Completed(result):
                await self._end("completed", {"result": result})
            case Failed(code, message, data):
                more = {} if data is None else {"data": data}
                await self._end("failed", {"error": {"code": code, "message": message, **more}})
            case Paused(actions):
                expiries = [ms_of(action["expires_at"]) for action in actions if action["expires_at"] is not None]
                pause = PauseRecord(path="", expires_at=min(expiries, default=None)).text()
                data = {"required_actions": [dict(action) for action in actions]}
                await self._end("requires_action", data, pause=pause)

    async def _settle_cancelled(self) -> None:
        run = self._desk.run
        inventory = await Inventory.of_events(self._stage.log, run, self._desk.kept(run.id))
        await self._end("cancelled", {"reason": self._reason or "work", "operations": inventory.lists()})

    async def _end(self, status: str, data: Any, pause: str | None = None) -> None:
        stage = self._stage
        settle = settling(self._desk.run, "end", status, data, stage.clock, 0, pause)
        if settle.size > stage.limits.event_bytes:
            error = {"code": "event_too_large", "message": f"the settling event has {settle.size} bytes"}
            settle = settling(self._desk.run, "end", "failed", {"error": error}, stage.clock, 0)
        await self._desk.append([settle])

    def _entry(
        self, step: str, kind: str, data: Any, *, status: str | None = None, release: str | None = None
    ) -> Entry:
        clock = self._stage.clock
        return entry(
            self._desk.run, step, kind, data, time=clock.time(0), at=clock.now(), status=status, release=release
        )
