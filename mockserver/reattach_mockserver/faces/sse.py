"""An event stream: from a good cursor to the settling event, replay and live without a seam.

What is sent, and when, is `reading.py`'s; here it becomes bytes of an answer. A page that is ready goes out in one piece; in
deterministic mode each event is an HTTP chunk of its own.

Where the rules come from: PROTOCOL, section 4. Checked by tests/mockserver/test_stream.py.
"""

from collections.abc import Mapping

from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.event import Stored
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.frames import Frames
from reattach_mockserver.faces.presence import presence
from reattach_mockserver.faces.reading import Beat, Cut, Leave, Over, Page, Reading
from reattach_mockserver.logs.base import RunRecord

STREAM_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
}


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
    hooks = engine.settings.hooks
    if hooks.found is not None:
        await hooks.found(run.id, after)
    with engine.hub.watching(run.id, call.caller.principal, stream=True) as watcher:
        async with presence(call, watcher):
            if hooks.joined is not None:
                await hooks.joined(run.id, after)
            await call.begin(status, head)
            frames = Frames(run.epoch, engine.limits(run).line_end, named=named)
            await _Stream(call, frames, deterministic=engine.settings.deterministic).send(
                Reading(engine, run, after, watcher)
            )


class _Stream:
    def __init__(self, call: Call, frames: Frames, *, deterministic: bool) -> None:
        self._call = call
        self._frames = frames
        self._deterministic = deterministic

    async def send(self, reading: Reading) -> None:
        """Send everything; a stream that was cut is left without its end, so that the loss can be seen."""
        await self._put(self._frames.attached(await reading.attached()))
        while True:
            match await reading.next():
                case Page(events):
                    await self._put_events(events)
                case Beat():
                    await self._put(self._frames.heartbeat())
                case Leave(reason):
                    await self._put(self._frames.closing(reason))
                    break
                case Over():
                    break
                case Cut():
                    return
        await self._call.send({"type": "http.response.body", "body": b""})

    async def _put_events(self, page: tuple[Stored, ...]) -> None:
        blocks = [self._frames.event(event) for event in page]
        if self._deterministic:
            for block in blocks:
                await self._put(block)
        else:
            await self._put(b"".join(blocks))

    async def _put(self, block: bytes) -> None:
        await self._call.send({"type": "http.response.body", "body": block, "more_body": True})
