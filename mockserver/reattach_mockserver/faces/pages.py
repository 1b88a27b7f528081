"""Events as JSON pages, and the long poll: the same bytes of each event as on the stream.

Where the rules come from: PROTOCOL, section 3. Checked by tests/mockserver/test_reads.py.
"""

import asyncio
from contextlib import suppress

from reattach_mockserver.cursor import Cursor
from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.engine.hub import Watcher
from reattach_mockserver.event import SETTLED, Stored, json_text
from reattach_mockserver.faces.call import Call, Gone
from reattach_mockserver.faces.checks import check_cursor, find_run, sequence_after
from reattach_mockserver.faces.presence import presence
from reattach_mockserver.logs.base import RunRecord

_LIMIT = 100
_MAX_LIMIT = 1_000
_MAX_WAIT_MS = 30_000
_PAGE_BYTES = 4_194_304  # a page of large events is cut short here; `next` says where to go on


async def answer_page(engine: Engine, call: Call) -> None:
    """Answer with a page of events; with `wait_ms`, once there is one, the run has settled, or time is up."""
    run = await find_run(engine, call)
    limit = call.number("limit", _LIMIT, 1, _MAX_LIMIT)
    wait_ms = min(call.number("wait_ms", 0, 0, None), _MAX_WAIT_MS)
    after = await sequence_after(engine, call, run, header=False)
    asked, hooks = Cursor(run.epoch, after), engine.settings.hooks
    if hooks.found is not None:
        await hooks.found(run.id, after)
    page = await engine.log.read(run.id, after, limit, _PAGE_BYTES)
    if hooks.read is not None:
        await hooks.read(run.id, after)
    if not page and wait_ms and not call.head and not _over(engine, run):
        with engine.hub.watching(run.id, call.caller.principal, stream=False) as watcher:
            async with presence(call, watcher):
                page = await _poll(engine, watcher, run, after, limit, wait_ms)
    # The record comes after the page, so it is not behind it. Trimmed, or replaced, meanwhile: the answer is the one that a
    # call made now would get.
    run = await find_run(engine, call)
    await check_cursor(engine, call, run, asked)
    await _answer(engine, call, run, after, page)


def _over(engine: Engine, run: RunRecord) -> bool:
    return run.status in SETTLED or engine.draining


async def _poll(
    engine: Engine, watcher: Watcher, run: RunRecord, after: int, limit: int, wait_ms: int
) -> tuple[Stored, ...]:
    hooks = engine.settings.hooks
    if hooks.joined is not None:
        await hooks.joined(run.id, after)
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_ms / 1000):
            while not watcher.cut:
                page = await engine.log.read(run.id, after, limit, _PAGE_BYTES)
                if hooks.read is not None:
                    await hooks.read(run.id, after)
                now = await engine.run(run.id)
                if page or now is None or now.epoch != run.epoch or now.first_sequence > after + 1:
                    return page
                if now.last_sequence > after:
                    continue  # appended since the page was read
                if _over(engine, now):
                    return page
                if hooks.replayed is not None:
                    await hooks.replayed(run.id, after)
                await watcher.wait(None)
                if hooks.roused is not None:
                    await hooks.roused(run.id, after)
            raise Gone
    return ()


async def _answer(engine: Engine, call: Call, run: RunRecord, after: int, page: tuple[Stored, ...]) -> None:
    cursor_id = await engine.log.event_id(run.id, after)
    last = page[-1].sequence if page else after
    rest = {
        "next": f"{run.epoch}.{last}",
        "cursor_id": cursor_id,
        "epoch": run.epoch,
        "status": run.status,
        "first_sequence": run.first_sequence,
        "last_sequence": run.last_sequence,
    }
    # The events' texts go in as they are: parsed and written again they might not be the same bytes.
    body = b'{"events":[' + b",".join(event.body for event in page) + b"]," + json_text(rest)[1:].encode()
    await call.answer(200, body, {"Content-Type": "application/json"})
