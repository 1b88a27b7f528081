"""The asynchronous face's AsyncRun: the same names as `run.py`, awaited where disk or network is touched."""

from __future__ import annotations

import asyncio
import weakref
from asyncio import current_task
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread

from reattach import errors
from reattach.async_transaction import AsyncEntering, AsyncTransaction
from reattach.core.fold import Fold
from reattach.model import Answer, Connection, Event, Needs, OnGap, Outcome, Status, View
from reattach.runtime import confirming, listing, looking
from reattach.runtime.clock import sleep
from reattach.runtime.consumption import Consumption, Owner
from reattach.runtime.handle import Handle
from reattach.runtime.loop import Bell
from reattach.stores.base import RunRow

if TYPE_CHECKING:
    from reattach.async_client import AsyncClient

T = TypeVar("T")


class AsyncRun:
    """A handle for one run: an asynchronous iterator of its events, and an asynchronous context manager; see `Run`.

    Its facts (`key`, `session_id`, `created_at`, `needs`) are those that the journal told when something of it was awaited last.
    """

    def __init__(
        self,
        client: AsyncClient,
        row: RunRow | None,
        run_id: str,
        *,
        after: str | None = None,
        on_gap: OnGap = "raise",
        consumer: str = "main",
        manual: bool = False,
        needs: Needs | None = None,
    ) -> None:
        self._client = client
        self._row = row
        self._run_id = run_id
        self._after = after
        self._on_gap = on_gap
        self._consumer = consumer
        self._manual = manual
        self._needs = needs
        self._made: Handle | None = None
        self._reading: Consumption | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        """Of the loop; to ask it for its task in its own thread is four times cheaper than to ask which loop is running."""
        self._bell = Bell()
        self._unlisten: Callable[[], None] | None = None
        self._forgotten: weakref.finalize[..., Any] | None = None
        self._fold: Fold | None = None
        self._ended = False

    # facts -----------------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The run's id; "" while the answer to its start is not known."""
        return self._made.run_id if self._made is not None else self._run_id

    @property
    def key(self) -> str | None:
        """The application's name for the work, if this journal started it."""
        return self._fact().key

    @property
    def session_id(self) -> str | None:
        """The conversation, where known."""
        return self._fact().session_id

    @property
    def created_at(self) -> datetime:
        """When this journal first heard of the run, in UTC."""
        return self._fact().created_at

    @property
    def needs(self) -> Needs:
        """What it needs from its application: "nothing", "follow", "respond", "reconcile" or "repair"."""
        self._fact()
        needs = self._needs if self._made is None or self._made.needs is None else self._made.needs
        return "follow" if needs is None else needs

    def _fact(self) -> RunRow:
        row = self._row if self._made is None or self._made.last is None else self._made.last
        if row is None:
            raise errors.UsageError(
                f"the journal was not asked about run {self.id!r} yet.",
                run_id=self.id,
                hint="Await anything of it first, such as view().",
            )
        return row

    @property
    def connection(self) -> Connection:
        """How the connection is now; `str()` of it is one line for a person."""
        return Connection() if self._made is None else self._made.connection

    def __repr__(self) -> str:
        return f"<AsyncRun {self.id or (self._row and self._row.key)!r} {self.connection.phase}>"

    # the loop --------------------------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncRun:
        """Go on after the last confirmed event; an event in hand that was not confirmed comes again, marked."""
        reading = self._reading
        if reading is not None:
            reading.own(_owner())
            reading.rewind()
        return self

    async def __anext__(self) -> Event:
        """Confirm the event in hand and return the next one, as soon as it is on disk. Cancelled, nothing is lost.

        Raises:
            StopAsyncIteration: The run has settled and every event was handed out.
            ReattachError: See `Client.attach`; the journal is intact, iterate again.
        """
        reading = self._reading
        if reading is not None and self._made is not None and self._made.engine.undisturbed:
            loop = self._loop
            here = loop is not None and get_ident() == self._thread
            event = reading.swift(id(current_task(loop)) if here else _task_key())
            if event is not None:
                return event
        engine = self._client._ready()
        if reading is None:
            if self._ended:
                raise StopAsyncIteration
            reading = await self._consume()
        reading.own(_owner())
        try:
            reading.confirm()
            while True:
                engine.check_open()
                reading.check_kept()
                rung = self._bell.ready()
                end = reading.feed.end
                event = reading.take()
                if event is not None:
                    return event
                if reading.stored:
                    if reading.feed.bare:
                        await self._let_go()
                        reading = await self._consume()
                        continue
                    with engine.named_faults():
                        await anyio.to_thread.run_sync(reading.load)
                    continue
                if end is not None and reading.exhausted:
                    break
                await rung.wait()
        except errors.ReattachError:
            await self._let_go(ended=True)
            raise
        self._ended = end.error is None and not reading.unconfirmed
        await self._let_go(ended=True)
        if end.error is not None:
            raise end.error
        with suppress(errors.Closed):
            await engine.during(self._handle().known)  # so that `needs` tells what it needs now
        raise StopAsyncIteration

    async def _consume(self) -> Consumption:
        handle = self._handle()
        reading = await handle.engine.during(handle.consume)
        reading.own(_owner())
        self._loop, self._thread = _running_loop(), get_ident()
        self._reading = reading
        # The feed must not keep this run from being collected.
        self._unlisten = reading.feed.listen(self._bell.ring)
        self._forgotten = weakref.finalize(self, handle.abandon)
        self._forgotten.atexit = False
        return reading

    async def _let_go(self, *, ended: bool = False) -> None:
        """Stop reading; never raises (but for a cancellation), so that what ends a loop is told.

        Args:
            ended: By itself, not by the application: what was handed out may still be confirmed.
        """
        if self._unlisten is not None:
            self._unlisten()
        self._unlisten = None
        reading, self._reading = self._reading, None
        if self._made is None or (reading is None and self._made.unconfirmed is None):
            return
        if self._forgotten is not None and not (ended and reading is not None and reading.unconfirmed):
            self._forgotten.detach()
            self._forgotten = None
        if reading is not None:
            reading.drop()
        self._bell.ring()
        engine = self._made.engine
        if not engine.closed:
            with suppress(errors.ReattachError):  # it was closed meanwhile, and everything with it
                await engine.during(self._made.end if ended else self._made.detach)

    async def __aenter__(self) -> AsyncRun:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._confirm_in_hand_here()
        await self.detach()

    def _confirm_in_hand_here(self) -> None:
        """An `async with` is left normally by this task: the event that it has in hand is done with."""
        reading = self._reading
        if reading is not None and reading.owned_by(_owner()):
            with suppress(errors.LeaseLost):  # whoever took the run over sees the event again
                reading.confirm()

    # looking and asking ----------------------------------------------------------------------------------------------

    async def views(self, *, interval: float = 0.05) -> AsyncIterator[View]:
        """Yield the whole view whenever it or the connection changed; the newest wins; see `Run.views`."""
        handle = self._handle()
        engine = handle.engine
        look = await engine.during(handle.look_on)
        bell = Bell()
        stop = look.followed.feed.listen(bell.ring)
        try:
            while True:
                rung = bell.ready()
                feed = look.followed.feed
                end = feed.end
                whole = True
                if look.fold.position < feed.readable:
                    with engine.named_faults():
                        whole = await anyio.to_thread.run_sync(looking.grow, look, engine)
                if not whole or look.followed.superseded:
                    before, look = look, await engine.during(handle.look_on)
                    stop()
                    before.followed.leave()
                    stop = look.followed.feed.listen(bell.ring)
                    continue
                yield listing.shown(look.fold, feed, end)
                if end is not None and look.fold.position >= feed.readable:
                    if end.error is not None:
                        raise end.error
                    return
                if feed.end is None:
                    await rung.wait()
                    await engine.during(sleep, engine.clock, interval)
        finally:
            stop()
            look.followed.leave()

    async def view(self) -> View:
        """Return the fold of the journal; no network."""
        handle = self._handle()
        self._fold, view = await handle.engine.during(handle.view, self._fold)
        return view

    async def status(self) -> Status:
        """Ask the server; see `Run.status`."""
        handle = self._handle()
        return await handle.engine.during(handle.status)

    async def wait(self, *, timeout: float | None = None) -> Outcome:
        """Follow to the end and return how it ended; see `Run.wait`."""
        handle = self._handle()
        return await handle.engine.during(handle.wait, timeout)

    async def result(self, *, timeout: float | None = None) -> Any:
        """Follow to the end and return the JSON result; see `Run.result`."""
        handle = self._handle()
        return await handle.engine.during(handle.result, timeout)

    async def ack(self, event: Event | None = None) -> None:
        """Confirm up to the event (default: the one in hand), durably when it returns; see `Run.ack`."""
        handle = self._handle()
        await handle.engine.during(confirming.acknowledge, handle, event)

    def transaction(self) -> AbstractAsyncContextManager[AsyncTransaction]:
        """Return a transaction of the journal's database that confirms the event in hand, or rolls back; see `Run`."""
        return AsyncEntering(self._handle)

    async def cancel(self, *, timeout: float = 30.0) -> Outcome:
        """Ask for the run to be cancelled, then wait for the truth; see `Run.cancel`."""
        handle = self._handle()
        return await handle.engine.during(handle.cancel, timeout)

    async def respond(self, *answers: Answer) -> AsyncRun:
        """Answer everything that the paused run waits for, and return the run that goes on from it; see `Run.respond`."""
        handle = self._handle()
        row, needs = await handle.engine.during(handle.respond, answers)
        return self._client._made(AsyncRun(self._client, row, row.run_id or "", on_gap=self._on_gap, needs=needs))

    async def detach(self) -> None:
        """Stop following; the run goes on. Twice is fine.

        Raises:
            UsageError: A transaction is open here.
        """
        if self._reading is not None and self._made is not None and not self._made.engine.closed:
            self._client._ready()
        await self._let_go()

    # ours ------------------------------------------------------------------------------------------------------------

    def _handle(self) -> Handle:
        engine = self._client._ready()
        if self._made is None:
            self._made = Handle(
                engine,
                self._row,
                self._run_id,
                after=self._after,
                on_gap=self._on_gap,
                consumer=self._consumer,
                manual=self._manual,
            )
        return self._made

    def _known(self, client: AsyncClient) -> RunRow | None:
        """The journal's row of this run for another handle of the same client."""
        return self._row if client is self._client else None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Return asyncio's loop, None where trio's runs."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _task_key() -> int:
    """Return what tells the task that runs, asyncio's or trio's, from every other living one."""
    try:
        return id(asyncio.current_task())
    except RuntimeError:
        import trio  # only where trio runs already

        return id(trio.lowlevel.current_task())


def _owner() -> Owner:
    """Return the task that runs now, without keeping it: a cancelled one holds its traceback, and by it the run."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is not None:
        return Owner(id(task), _unfinished(weakref.ref(task)))
    import trio  # only where trio runs already

    current = trio.lowlevel.current_task()
    return Owner(id(current), _suspended(weakref.ref(current)))


def _unfinished(kept: weakref.ref[asyncio.Task[Any]]) -> Callable[[], bool]:
    return lambda: (task := kept()) is not None and not task.done()


def _suspended(kept: weakref.ref[Any]) -> Callable[[], bool]:
    return lambda: (task := kept()) is not None and task.coro.cr_frame is not None
