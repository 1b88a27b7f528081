"""The asynchronous face: AsyncClient and AsyncRun, for asyncio and trio.

The same names as `client.py`, awaited where disk or network is touched. The engine lives in the caller's loop; use the client as
`async with`, in one task.
"""

from __future__ import annotations

import asyncio
import ssl
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Any, Literal, TypeVar

import anyio
import anyio.to_thread

from reattach import errors
from reattach.core.fold import Fold
from reattach.model import Connection, Event, Needs, OnGap, Outcome, Status, View
from reattach.observe import Observer
from reattach.policy import Policy
from reattach.profiles.base import Profile
from reattach.runtime import listing, outcomes
from reattach.runtime.consumption import Consumption, Owner
from reattach.runtime.engine import Engine
from reattach.runtime.followed import Followed
from reattach.runtime.handle import Handle
from reattach.runtime.loop import settled
from reattach.runtime.setup import Seams, TransportName, check, serving
from reattach.runtime.turn import Turn
from reattach.stores.base import RunRow, Store
from reattach.transports.base import Wire

T = TypeVar("T")


class AsyncClient:
    """One server and one journal, in the caller's event loop. Use it as `async with`.

    Args are those of `reattach.Client`, and also:

    Args:
        url: The server's address.
        journal: The file that remembers.
        token: The bearer token, or a function (also `async def`) that returns one; asked for at every attempt.
        profile: The vendor's dialect.
        transport: How to connect.
        on_gap: What to do where events cannot be had.
        keep: What the journal keeps of an event; this version keeps all of it.
        policy: Patience and politeness.
        headers: Sent with every request.
        ssl_context: TLS settings.
        proxy: A proxy's address.
        http_client: Your own httpx.AsyncClient, used for everything and never closed by us.
        observer: Called with a frozen Fact for everything that happens.

    Raises:
        UsageError: An argument cannot be right. Nothing was opened.
    """

    def __init__(
        self,
        url: str,
        journal: str | PathLike[str] | Store,
        *,
        token: str | Callable[[], Any] | None = None,
        profile: str | Profile = "native",
        transport: TransportName | Wire = "auto",
        on_gap: OnGap = "raise",
        keep: Literal["events", "cursor"] = "events",
        policy: Policy = Policy(),
        headers: Mapping[str, str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        proxy: str | None = None,
        http_client: Any = None,
        observer: Observer | None = None,
        _seams: Seams | None = None,
    ) -> None:
        self._setup = check(
            url,
            journal,
            token=token,
            profile=profile,
            transport=transport,
            on_gap=on_gap,
            keep=keep,
            policy=policy,
            headers=headers,
            ssl_context=ssl_context,
            proxy=proxy,
            observer=observer,
            http_client=http_client,
            seams=_seams,
        )
        self._serving: Any = None
        self._engine: Engine | None = None
        self._damage: errors.JournalDamaged | None = None
        self._runs: weakref.WeakSet[AsyncRun] = weakref.WeakSet()

    async def __aenter__(self) -> AsyncClient:
        if self._serving is not None:
            raise errors.UsageError("this AsyncClient was entered already.", hint="Make a new one.")
        self._serving = serving(self._setup)
        self._engine, self._damage = await self._serving.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            for run in list(self._runs):
                run._confirm_in_hand_here()
        await self._serving.__aexit__(None, None, None)

    async def start(
        self,
        input: str | Mapping[str, Any] | Sequence[Any],
        *,
        key: str,
        session_id: str | None = None,
        on_active: Literal["reject", "cancel"] = "reject",
        metadata: Mapping[str, str] | None = None,
    ) -> AsyncRun:
        """Start the work of this key, or attach to it if it was started before; see `Client.start`."""
        request, digest = listing.request(input, key, session_id, on_active, metadata)
        row = await listing.start(self._ready(), key, request, digest)
        return AsyncRun(self, row, row.run_id or "", on_gap=self._setup.on_gap)

    def attach(
        self,
        run: str | AsyncRun,
        *,
        consumer: str = "main",
        after: str | None = None,
        ack: Literal["auto", "manual"] = "auto",
        on_gap: OnGap | None = None,
    ) -> AsyncRun:
        """Return a handle for a run that exists; no I/O, so it is not awaited. See `Client.attach`."""
        run_id = listing.attachable(run if isinstance(run, str) else run.id, consumer, after, ack, on_gap)
        return AsyncRun(self, None, run_id, after=after, on_gap=on_gap or self._setup.on_gap)

    async def runs(self, *, unfinished: bool = False) -> list[AsyncRun]:
        """Return this server's runs in the journal, newest first; see `Client.runs`."""
        return [
            AsyncRun(self, row, row.run_id or "", on_gap=self._setup.on_gap, needs=needs)
            for row, needs in await listing.rows(self._ready(), unfinished)
        ]

    async def close(self) -> None:
        """End every socket, task and timer. Any state, any task, twice; who waits gets Closed; runs go on."""
        if self._engine is not None:
            await self._engine.close()

    def _ready(self) -> Engine:
        engine = self._here()
        engine.outside_a_turn(_task_key())
        damage, self._damage = self._damage, None
        if damage is not None:
            raise damage
        return engine

    def _here(self) -> Engine:
        if self._engine is None:
            raise errors.UsageError(
                "an AsyncClient must be entered first.",
                hint="Write: async with reattach.AsyncClient(url, journal) as client: …",
            )
        self._engine.check_open()
        return self._engine


class AsyncRun:
    """A handle for one run: an asynchronous iterator of its events, and an asynchronous context manager; see `Run`."""

    def __init__(
        self,
        client: AsyncClient,
        row: RunRow | None,
        run_id: str,
        *,
        after: str | None = None,
        on_gap: OnGap = "raise",
        needs: Needs | None = None,
    ) -> None:
        self._client = client
        self._row = row
        self._run_id = run_id
        self._after = after
        self._on_gap = on_gap
        self._needs = needs
        self._made: Handle | None = None
        self._reading: Consumption | None = None
        self._wake = anyio.Event()
        self._unlisten: Callable[[], None] | None = None
        self._fold: Fold | None = None
        self._ended = False
        client._runs.add(self)

    # facts -----------------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The run's id; "" while the answer to its start is not known."""
        return self._made.run_id if self._made is not None else self._run_id

    @property
    def key(self) -> str | None:
        """The application's name for the work, if this journal started it; known after the first await."""
        return None if self._row is None else self._row.key

    @property
    def session_id(self) -> str | None:
        """The conversation, where known."""
        return None if self._row is None else self._row.session_id

    @property
    def created_at(self) -> datetime:
        """When this journal first heard of the run, in UTC.

        Raises:
            UsageError: It was attached by id and not used yet.
        """
        if self._row is None:
            raise errors.UsageError("the journal does not know this run yet.", hint="Await anything of it first.")
        return self._row.created_at

    @property
    def needs(self) -> Needs:
        """What it needed from its application when it was listed; a handle that was not listed may need to be followed."""
        return "follow" if self._needs is None else self._needs

    @property
    def connection(self) -> Connection:
        """How the connection is now; `str()` of it is one line for a person."""
        return Connection() if self._made is None else self._made.connection

    def __repr__(self) -> str:
        return f"<AsyncRun {self.id or self.key!r} {self.connection.phase}>"

    # the loop --------------------------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncRun:
        """Go on after the last confirmed event; an event in hand that was not confirmed comes again, marked."""
        if self._reading is not None:
            self._reading.own(_owner())
            self._reading.rewind()
        return self

    async def __anext__(self) -> Event:
        """Confirm the event in hand and return the next one, as soon as it is on disk. Cancelled, nothing is lost.

        Raises:
            StopAsyncIteration: The run has settled and every event was handed out.
            ReattachError: See `Client.attach`; the journal is intact, iterate again.
        """
        reading, handle = self._reading, self._made
        if reading is None or handle is None:
            if self._ended:
                raise StopAsyncIteration
            handle = self._handle()
            reading = await self._consume(handle)
        handle.engine.outside_a_turn(_task_key())
        reading.own(_owner())
        reading.confirm()
        while True:
            end = reading.feed.end
            event = reading.take()
            if event is not None:
                return event
            if reading.stored:
                await anyio.to_thread.run_sync(reading.load)
                continue
            if end is not None and reading.exhausted:
                error = end.error
                await self._let_go()
                if error is not None:
                    raise error
                self._ended = True
                raise StopAsyncIteration
            self._wake = anyio.Event()
            if reading.feed.end is not end or not reading.exhausted:
                continue
            await self._wake.wait()

    async def _consume(self, handle: Handle) -> Consumption:
        reading = await handle.consume()
        self._row = await handle.row()
        reading.own(_owner())
        self._reading = reading
        self._unlisten = reading.feed.listen(lambda: self._wake.set())
        return reading

    async def _let_go(self) -> None:
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None
        reading, self._reading = self._reading, None
        if reading is not None and self._made is not None and not self._made.engine.closed:
            await self._made.detach()

    async def __aenter__(self) -> AsyncRun:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._reading is not None:
            self._reading.confirm()
        await self.detach()

    def _confirm_in_hand_here(self) -> None:
        """The client's `async with` is left normally by this task: the event that it has in hand is done with."""
        if self._reading is not None and self._reading.owned_by(_owner()):
            self._reading.confirm()

    # looking and asking ----------------------------------------------------------------------------------------------

    async def views(self, *, interval: float = 0.05) -> AsyncIterator[View]:
        """Yield the whole view whenever it or the connection changed; the newest wins; see `Run.views`."""
        handle = self._handle()
        followed: Followed = await handle.look_on()
        changed = [anyio.Event()]
        stop = followed.feed.listen(lambda: changed[0].set())
        fold = Fold(handle.run_id)
        engine = handle.engine
        try:
            while True:
                changed[0] = anyio.Event()
                end = followed.feed.end
                readable = followed.feed.readable
                if fold.position < readable:
                    await anyio.to_thread.run_sync(listing.fold_up, fold, followed.feed, engine, followed.run, readable)
                yield listing.shown(fold, followed.feed, end)
                if end is not None and fold.position >= followed.feed.readable:
                    if end.error is not None:
                        raise end.error
                    return
                if followed.feed.end is None:
                    await changed[0].wait()
                    await handle.pause(interval)
        finally:
            stop()
            followed.leave()

    async def view(self) -> View:
        """Return the fold of the journal; no network."""
        row = await self._current()
        engine = self._client._ready()
        fold = self._fold
        if fold is None:
            fold = self._fold = Fold(row.run_id or "")
        await anyio.to_thread.run_sync(outcomes.catch_up, fold, engine.store, row.run, engine.profile)
        return listing.with_status(fold.view(), row, self.connection)

    async def status(self) -> Status:
        """Ask the server; see `Run.status`."""
        self._client._ready()
        return await self._handle().status()

    async def wait(self, *, timeout: float | None = None) -> Outcome:
        """Follow to the end and return how it ended; see `Run.wait`."""
        self._client._ready()
        return await self._handle().wait(timeout)

    async def result(self, *, timeout: float | None = None) -> Any:
        """Follow to the end and return the JSON result; see `Run.result`."""
        outcome = await self.wait(timeout=timeout)
        row = await self._current()
        return outcomes.result_of(outcome, row.key, row.committed.cursor)

    async def ack(self, event: Event | None = None) -> None:
        """Confirm up to the event (default: the one in hand), durably when it returns; see `Run.ack`."""
        self._client._ready()
        await self._handle().acknowledge(event)

    def transaction(self) -> AbstractAsyncContextManager[AsyncTransaction]:
        """Return a transaction of the journal's database that confirms the event in hand, or rolls back; see `Run`."""
        return _Leaving(self)

    async def cancel(self, *, timeout: float = 30.0) -> Outcome:
        """Ask for the run to be cancelled, then wait for the truth; see `Run.cancel`."""
        self._client._ready()
        return await self._handle().cancel(timeout)

    async def detach(self) -> None:
        """Stop following; the run goes on. Twice is fine."""
        await self._let_go()

    # ours ------------------------------------------------------------------------------------------------------------

    def _handle(self) -> Handle:
        if self._made is None:
            engine = self._client._here()
            self._made = Handle(engine, self._row, self._run_id, after=self._after, on_gap=self._on_gap)
        return self._made

    async def _current(self) -> RunRow:
        self._row = await self._handle().row()
        return self._row


class AsyncTransaction:
    """The user's transaction; see `Transaction`.

    Attributes:
        event: The event that leaving the block confirms.
    """

    def __init__(self, turn: Turn, event: Event, engine: Engine) -> None:
        self._turn = turn
        self._engine = engine
        self.event = event

    async def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows; see `Transaction.execute`."""
        return await settled(self._turn.execute(sql, parameters), self._engine.soon)

    async def call(self, function: Callable[[Any], T]) -> T:
        """Return `function(connection)`, run on the writer's thread with the driver's connection."""
        return await settled(self._turn.call(function), self._engine.soon)


class _Leaving(AbstractAsyncContextManager[AsyncTransaction]):
    """Enters and leaves a transaction."""

    def __init__(self, run: AsyncRun) -> None:
        self._run = run
        self._turn: Turn | None = None
        self._event: Event | None = None
        self._key = 0

    async def __aenter__(self) -> AsyncTransaction:
        engine = self._run._client._ready()
        handle = self._run._handle()
        self._turn = handle.turn()
        reading = handle.consumption
        assert reading is not None
        assert reading.in_hand is not None
        self._event = reading.in_hand
        self._key = _task_key()
        engine.enter_turn(self._turn, self._key)
        return AsyncTransaction(self._turn, self._event, engine)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        turn, event, handle = self._turn, self._event, self._run._made
        assert turn is not None
        assert event is not None
        assert handle is not None
        reading = handle.consumption
        soon = handle.engine.soon
        try:
            with anyio.CancelScope(shield=True):  # half left is worse than late: the writer waits for this turn
                if kind is not None:
                    await settled(turn.rollback(), soon)
                    if reading is not None:
                        reading.repeat()
                    return
                try:
                    await settled(turn.commit(), soon)
                except BaseException:
                    if reading is not None:
                        reading.repeat()
                    raise
                if reading is not None:
                    reading.confirmed(event.position)
        finally:
            handle.engine.leave_turn(self._key)


def _task_key() -> int:
    return anyio.get_current_task().id


def _owner() -> Owner:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is not None:
        return Owner(id(task), _unfinished(task))
    import trio  # only where trio runs already

    current = trio.lowlevel.current_task()
    return Owner(id(current), lambda: current.coro.cr_frame is not None)


def _unfinished(task: asyncio.Task[Any]) -> Callable[[], bool]:
    return lambda: not task.done()
