"""An event stream: from a good cursor to the settling event, replay and live without a seam.

The reader joins the hub, then reads the log page after page from the last event sent, and waits only after a read
that brought nothing. It sends no faster than its client takes, and holds one page at most. A page that is ready goes
out in one piece; in deterministic mode each event is an HTTP chunk of its own.

Where the rules come from: PROTOCOL, section 4. Checked by tests/mockserver/test_stream.py.
"""

import asyncio
from collections.abc import Mapping

from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.engine.hub import Watcher
from reattach_mockserver.event import SETTLED, Stored
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.frames import Frames
from reattach_mockserver.faces.presence import presence
from reattach_mockserver.logs.base import RunRecord

STREAM_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}

_FIRST_PAGE = 32  # events; small, so that the first one is on its way at once
_PAGE = 512
_PAGE_BYTES = 262_144


async def stream(
    engine: Engine,
    call: Call,
    run: RunRecord,
    after: int,
    *,
    named: bool,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Answer with the run's events after `after`, which was found good; return when the stream is over."""
    head = {**STREAM_HEADERS, **(headers or {})}
    if call.head:
        await call.begin(status, head)
        await call.send({"type": "http.response.body", "body": b""})
        return
    with engine.hub.watching(run.id, call.caller.principal, stream=True) as watcher:
        async with presence(call, watcher):
            await call.begin(status, head)
            await _Stream(engine, call, run, after, watcher, named=named).send()


class _Stream:
    def __init__(
        self, engine: Engine, call: Call, run: RunRecord, after: int, watcher: Watcher, *, named: bool
    ) -> None:
        limits = engine.limits(run)
        self._engine = engine
        self._call = call
        self._run = run
        self._sent = after
        self._watcher = watcher
        self._frames = Frames(run.epoch, limits.line_end, named=named)
        self._heartbeat_ms = limits.heartbeat_ms
        self._beat = limits.heartbeat_ms * 2 / 3 / 1000
        self._clock = asyncio.get_running_loop().time
        self._last_byte = self._clock()
        age = limits.stream_age_ms
        self._until = None if age is None else self._clock() + age / 1000

    async def send(self) -> None:
        """Send everything; a stream that was cut is left without its end, so that the loss can be seen."""
        await self._put(self._frames.attached(self._attached()))
        size = _FIRST_PAGE
        while not self._watcher.cut:
            run = await self._engine.run(self._run.id)
            reason = self._reason_to_close(run)
            if reason is not None or run is None:
                await self._finish(self._frames.closing(reason or "epoch_changed"))
                return
            page = self._engine.log.read(run.id, self._sent, size, _PAGE_BYTES)
            size = _PAGE
            if page:
                await self._put_events(page)
            settled = page[-1].settles if page else run.status in SETTLED
            if settled:
                await self._finish(b"")
                return
            if not page:
                await self._engine.settings.hooks.replayed(run.id, self._sent)
                await self._watcher.wait(self._patience())
                await self._beat_if_due()

    async def _beat_if_due(self) -> None:
        if not self._watcher.cut and self._clock() >= self._last_byte + self._beat:
            await self._put(self._frames.heartbeat())

    def _attached(self) -> dict[str, object]:
        run = self._run
        return {
            "protocol": 1,
            "run_id": run.id,
            "epoch": run.epoch,
            "cursor": f"{run.epoch}.{self._sent}",
            "cursor_id": self._engine.log.event_id(run.id, self._sent),
            "last_sequence": run.last_sequence,
            "status": run.status,
            "heartbeat_ms": self._heartbeat_ms,
        }

    def _reason_to_close(self, run: RunRecord | None) -> str | None:
        if run is None or run.epoch != self._run.epoch:
            return "epoch_changed"
        if self._sent + 1 < run.first_sequence:
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

    async def _put_events(self, page: tuple[Stored, ...]) -> None:
        blocks = [self._frames.event(event) for event in page]
        if self._engine.settings.deterministic:
            for block in blocks:
                await self._put(block)
        else:
            await self._put(b"".join(blocks))
        self._sent = page[-1].sequence

    async def _put(self, block: bytes) -> None:
        await self._call.send({"type": "http.response.body", "body": block, "more_body": True})
        self._last_byte = self._clock()

    async def _finish(self, block: bytes) -> None:
        if block:
            await self._put(block)
        await self._call.send({"type": "http.response.body", "body": b""})
