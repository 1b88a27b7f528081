"""One reader of one run, step by step: what every form of a stream sends, and when, whatever its bytes look like.

The reader has joined the hub before it reads; it reads the log page after page from the last event handed out, and waits only
after a read that brought nothing, so replay and live have no seam. It reads no faster than its form sends, and holds one page at
most. Knows no bytes and no transport.

Where the rules come from: PROTOCOL, section 4. Checked by tests/mockserver/test_stream.py and test_socket.py.
"""

import asyncio
from typing import NamedTuple, TypeAlias

from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.engine.hub import Watcher
from reattach_mockserver.event import SETTLED, Stored
from reattach_mockserver.logs.base import LogUnavailable, RunRecord

_FIRST_PAGE = 32  # events; small, so that the first one is on its way at once
_PAGE = 512
_PAGE_BYTES = 262_144
_LOG_AWAY = 0.25  # seconds until a log that could not be read is asked again


class Page(NamedTuple):
    """Send these events, the next in order."""

    events: tuple[Stored, ...]


class Beat(NamedTuple):
    """Send a heartbeat: nothing was sent for two thirds of the time that may pass."""


class Leave(NamedTuple):
    """Say why, and close a healthy stream between two events."""

    reason: str


class Over(NamedTuple):
    """The settling event was sent: end the stream."""


class Cut(NamedTuple):
    """Break off at once, without a word."""


Step: TypeAlias = Page | Beat | Leave | Over | Cut


class Reading:
    """The steps of one stream, from `after`, which was found good. What a step asks for is sent before the next is asked for."""

    def __init__(self, engine: Engine, run: RunRecord, after: int, watcher: Watcher) -> None:
        limits = engine.limits(run)
        self._engine = engine
        self._hooks = engine.settings.hooks
        self._run = run
        self._watcher = watcher
        self._clock = asyncio.get_running_loop().time
        self._beat = limits.heartbeat_ms * 2 / 3 / 1000
        self._last_byte = self._clock()
        self._until = None if limits.stream_age_ms is None else self._clock() + limits.stream_age_ms / 1000
        self._size = _FIRST_PAGE
        self._over = False
        self._paged = False
        self._after = after
        self.heartbeat_ms = limits.heartbeat_ms

    async def attached(self) -> dict[str, object]:
        """Return where the stream begins: what answers the attach, in every form."""
        run = self._run
        return {
            "protocol": 1,
            "run_id": run.id,
            "epoch": run.epoch,
            "cursor": f"{run.epoch}.{self._after}",
            "cursor_id": await self._engine.log.event_id(run.id, self._after),
            "last_sequence": run.last_sequence,
            "status": run.status,
            "heartbeat_ms": self.heartbeat_ms,
        }

    async def next(self) -> Step:
        """Return what is to be sent now; waits while there is nothing."""
        hooks = self._hooks
        self._last_byte = self._clock()  # what the step before asked for was sent just now
        if self._paged and hooks.sent is not None:
            await hooks.sent(self._run.id, self._after)
        self._paged = False
        while not self._watcher.cut:
            if self._over:
                return Over()
            away = False
            try:
                step = await self._look()
                if step is not None:
                    return step
            except LogUnavailable:
                # What is in the log is still owed, and the client is better off here than attaching anew.
                if self._watcher.closing is not None:
                    return Leave(self._watcher.closing)
                away = True
            await self._watcher.wait(min(self._patience(), _LOG_AWAY) if away else self._patience())
            if hooks.roused is not None:
                await hooks.roused(self._run.id, self._after)
            if self._quiet_for_long():
                return Beat()
        return Cut()

    async def _look(self) -> Step | None:
        """Return what the log has to be sent, None if there is nothing."""
        hooks = self._hooks
        while True:
            page = await self._engine.log.read(self._run.id, self._after, self._size, _PAGE_BYTES)
            if hooks.read is not None:
                await hooks.read(self._run.id, self._after)
            # The record comes after the page: if it is of our epoch and keeps what we want, so did the log when we read.
            run = await self._engine.run(self._run.id)
            reason = self._reason_to_close(run)
            if reason is not None or run is None:
                return Leave(reason or "epoch_changed")
            self._size = _PAGE
            if page:
                self._after = page[-1].sequence
                self._over = page[-1].settles
                self._paged = True
                return Page(page)
            if self._after < run.last_sequence:
                continue  # appended between the two
            if run.status in SETTLED:
                return Over()
            if hooks.replayed is not None:
                await hooks.replayed(self._run.id, self._after)
            return None

    def _quiet_for_long(self) -> bool:
        return not self._watcher.cut and self._clock() >= self._last_byte + self._beat

    def _reason_to_close(self, run: RunRecord | None) -> str | None:
        if run is None or run.epoch != self._run.epoch:
            return "epoch_changed"
        if self._after + 1 < run.first_sequence:
            return "cursor_expired"
        if self._watcher.closing is not None:
            return self._watcher.closing
        if self._until is not None and self._clock() >= self._until:
            return "max_age"
        return None

    def _patience(self) -> float:
        """Return the seconds until something must be sent though nothing happens."""
        times = [self._last_byte + self._beat, *([] if self._until is None else [self._until])]
        return min(times) - self._clock()
