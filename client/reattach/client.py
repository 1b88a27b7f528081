"""The blocking face: Client and Run. `async_client.py` is the same, awaited.

A client is one server and one journal. Its engine lives in the process's portal thread; what crosses to a reader is a number, how
far it may read. Nothing is open before the first use, and closing ends every socket, task and timer; runs go on.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import ssl
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Any, Literal, TypeVar

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
from reattach.runtime.portal import portal
from reattach.runtime.setup import Seams, Setup, TransportName, check, serving
from reattach.runtime.turn import Turn
from reattach.stores.base import RunRow, Store
from reattach.transports.base import Wire

T = TypeVar("T")


class _Host:
    """An engine in the portal thread, opened on first use. Holds no reference to its Client, so that one can be collected."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.pid = os.getpid()
        self.closed = False
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._damage: errors.JournalDamaged | None = None
        self._stop: asyncio.Event | None = None
        self._serving: concurrent.futures.Future[None] | None = None

    def engine(self) -> Engine:
        """Return the running engine.

        Raises:
            UsageError: The process forked since.
            Closed: The client was closed.
            JournalDamaged: Told once; the next use goes on with the new journal.
        """
        if self.pid != os.getpid():
            raise errors.UsageError(
                f"this client belongs to process {self.pid}; this is its fork {os.getpid()}.",
                hint="Make a new Client on the same journal here.",
            )
        if self.closed:
            raise errors.Closed("the client is closed.", hint="Runs go on; make a new Client on the same journal.")
        with self._lock:
            if self._engine is None:
                opened: concurrent.futures.Future[None] = concurrent.futures.Future()
                self._serving = portal().submit(self._serve, opened)
                opened.result()
            damage, self._damage = self._damage, None
        if damage is not None:
            raise damage
        assert self._engine is not None
        return self._engine

    async def _serve(self, opened: concurrent.futures.Future[None]) -> None:
        stop = asyncio.Event()
        try:
            async with serving(self.setup) as (engine, damage):
                self._engine, self._damage, self._stop = engine, damage, stop
                opened.set_result(None)
                await stop.wait()
        except BaseException as error:
            if not opened.done():
                opened.set_exception(error)
                return
            raise

    def close(self) -> None:
        """Close, in any state, twice, from any thread."""
        if self.pid != os.getpid():
            return  # the parent's; nothing of it lives here
        self.closed = True
        with self._lock:
            served, stop = self._serving, self._stop
        if served is not None and stop is not None:
            portal().call(_set, stop)
            served.result()


async def _set(event: asyncio.Event) -> None:
    event.set()


def _release(host: _Host) -> None:
    if not host.closed and host.pid == os.getpid():
        warnings.warn("a reattach.Client was not closed; use `with`", ResourceWarning, stacklevel=2)
        host.close()


class Client:
    """One server and one journal. Thread-safe; opens on first use; use it in `with`, which closes it.

    Args:
        url: The server's address, such as "http://127.0.0.1:8700".
        journal: The file that remembers: the path of a SQLite file, ":memory:" (forgets: tests only), or a Store.
        token: The bearer token, or a function that returns one; it is asked for at every attempt.
        profile: The vendor's dialect: a name, or a Profile.
        transport: How to connect; "auto" chooses.
        on_gap: What to do where events cannot be had: "raise", go on from the server's "snapshot", or "continue" at the oldest
            event kept.
        keep: What the journal keeps of an event; this version keeps all of it.
        policy: Patience and politeness.
        headers: Sent with every request.
        ssl_context: TLS settings; by default one context for the process.
        proxy: A proxy's address; by default the environment's.
        observer: Called with a frozen Fact for everything that happens; must be quick.

    Raises:
        UsageError: An argument cannot be right. Nothing was opened.
    """

    def __init__(
        self,
        url: str,
        journal: str | PathLike[str] | Store,
        *,
        token: str | Callable[[], str] | None = None,
        profile: str | Profile = "native",
        transport: TransportName | Wire = "auto",
        on_gap: OnGap = "raise",
        keep: Literal["events", "cursor"] = "events",
        policy: Policy = Policy(),
        headers: Mapping[str, str] | None = None,
        ssl_context: ssl.SSLContext | None = None,
        proxy: str | None = None,
        observer: Observer | None = None,
        _seams: Seams | None = None,
    ) -> None:
        setup = check(
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
            seams=_seams,
        )
        self._host = _Host(setup)
        self._runs: weakref.WeakSet[Run] = weakref.WeakSet()
        self._finalizer = weakref.finalize(self, _release, self._host)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            for run in list(self._runs):
                run._confirm_in_hand_here()
        self.close()

    def start(
        self,
        input: str | Mapping[str, Any] | Sequence[Any],
        *,
        key: str,
        session_id: str | None = None,
        on_active: Literal["reject", "cancel"] = "reject",
        metadata: Mapping[str, str] | None = None,
    ) -> Run:
        """Start the work of this key, or attach to it if it was started before. Starting twice is attaching.

        The intent is on disk before the request leaves. If the answer is lost, the same key is sent again, now or by the next
        process that starts it.

        Args:
            input: What the agent is given: JSON.
            key: Your own name for this work, 1 to 255 visible ASCII characters. A new key is new work, and paid for.
            session_id: The conversation; None begins one.
            on_active: What to do if the session has a run that is not settled.
            metadata: Texts kept with the run.

        Raises:
            UsageError: The key or the input cannot be sent. Nothing was.
            KeyConflict: The key names other work already. Nothing was sent.
            SessionBusy: The session has a run that is not settled. Nothing was created.
            NotAuthorized, AttachError, RemoteProtocolError: The server refused; nothing was created.
            ReconnectExhausted: No answer for policy.give_up_after s; start again with the same key.
            AmbiguousOutcome: Sent so long ago, and never answered, that sending again could create a second run.
        """
        request, digest = listing.request(input, key, session_id, on_active, metadata)
        engine = self._ready()
        row = portal().call(listing.start, engine, key, request, digest)
        return self._run(engine, row, row.run_id or "")

    def attach(
        self,
        run: str | Run,
        *,
        consumer: str = "main",
        after: str | None = None,
        ack: Literal["auto", "manual"] = "auto",
        on_gap: OnGap | None = None,
    ) -> Run:
        """Return a handle for a run that exists. Nothing is sent, and nothing opened, before it is read.

        Args:
            run: The run's id as the server gave it, or a Run of this client.
            consumer: Whose mark of confirmed events; this version has "main".
            after: Read only, from here: "beginning", "tail" or an event's cursor. Moves no mark.
            ack: This version has "auto".
            on_gap: Instead of the client's choice.

        Raises:
            UsageError: The arguments cannot be right.
        """
        run_id = listing.attachable(run if isinstance(run, str) else run.id, consumer, after, ack, on_gap)
        return Run(self, None, run_id, after=after, on_gap=on_gap or self._host.setup.on_gap)

    def runs(self, *, unfinished: bool = False) -> list[Run]:
        """Return this server's runs in the journal, newest first; asks nobody.

        Args:
            unfinished: Only those that need something: see `Run.needs`.
        """
        engine = self._ready()
        rows = portal().call(listing.rows, engine, unfinished)
        return [self._run(engine, row, row.run_id or "", needs=needs) for row, needs in rows]

    def close(self) -> None:
        """End every socket, task and timer. Any state, any thread, twice; who waits gets Closed; runs go on."""
        self._finalizer.detach()
        self._host.close()

    def _ready(self) -> Engine:
        engine = self._host.engine()
        engine.outside_a_turn(threading.get_ident())
        return engine

    def _run(self, engine: Engine, row: RunRow | None, run_id: str, needs: Needs | None = None) -> Run:
        return Run(self, row, run_id, on_gap=self._host.setup.on_gap, needs=needs)


class Run:
    """A handle for one run: an iterator of its events, and a context manager. Holds nothing open until it is read.

    Made by `Client.start`, `Client.attach` and `Client.runs`. One loop at a time; different runs in different threads are fine.
    """

    def __init__(
        self,
        client: Client,
        row: RunRow | None,
        run_id: str,
        *,
        after: str | None = None,
        on_gap: OnGap = "raise",
        needs: Needs | None = None,
    ) -> None:
        self._client = client
        self._host = client._host
        self._row = row
        self._run_id = run_id
        self._after = after
        self._on_gap = on_gap
        self._needs = needs
        self._made: Handle | None = None
        self._reading: Consumption | None = None
        self._wake = threading.Event()
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
        """The application's name for the work, if this journal started it."""
        return self._current().key

    @property
    def session_id(self) -> str | None:
        """The conversation, where known."""
        return self._current().session_id

    @property
    def created_at(self) -> datetime:
        """When this journal first heard of the run, in UTC."""
        return self._current().created_at

    @property
    def needs(self) -> Needs:
        """What it needs from its application: "nothing", "follow", "respond", "reconcile" or "repair"."""
        if self._needs is not None:
            return self._needs
        needs: Needs = portal().call(listing.needs, self._client._ready(), self._current())
        return needs

    @property
    def connection(self) -> Connection:
        """How the connection is now; `str()` of it is one line for a person."""
        return Connection() if self._made is None else self._made.connection

    def __repr__(self) -> str:
        return f"<Run {self.id or (self._row and self._row.key)!r} {self.connection.phase}>"

    # the loop --------------------------------------------------------------------------------------------------------

    def __iter__(self) -> Run:
        """Go on after the last confirmed event; an event in hand that was not confirmed comes again, marked."""
        if self._reading is not None:
            self._reading.own(_owner())
            self._reading.rewind()
        return self

    def __next__(self) -> Event:
        """Confirm the event in hand and return the next one, as soon as it is on disk.

        Raises:
            StopIteration: The run has settled and every event was handed out.
            ReattachError: See `Client.attach`; the journal is intact, iterate again.
        """
        reading, handle = self._reading, self._made
        if reading is None or handle is None:
            if self._ended:
                raise StopIteration
            handle = self._handle()
            reading = self._consume(handle)
        handle.engine.outside_a_turn(threading.get_ident())
        reading.own(_owner())
        reading.confirm()
        while True:
            self._wake.clear()
            end = reading.feed.end
            event = reading.take()
            if event is not None:
                return event
            if reading.stored:
                reading.load()
                continue
            if end is not None and reading.exhausted:
                error = end.error
                self._let_go()
                if error is not None:
                    raise error
                self._ended = True
                raise StopIteration
            self._wake.wait()

    def _consume(self, handle: Handle) -> Consumption:
        reading = portal().call(handle.consume)
        reading.own(_owner())
        self._reading = reading
        self._unlisten = reading.feed.listen(self._wake.set)
        return reading

    def _let_go(self) -> None:
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None
        reading, self._reading = self._reading, None
        if reading is not None and self._made is not None and not self._host.closed:
            portal().call(self._made.detach)

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._reading is not None:
            self._reading.confirm()
        self.detach()

    def _confirm_in_hand_here(self) -> None:
        """The client's `with` is left normally by this thread: the event that it has in hand is done with."""
        if self._reading is not None and self._reading.owned_by(_owner()):
            self._reading.confirm()

    # looking and asking ----------------------------------------------------------------------------------------------

    def views(self, *, interval: float = 0.05) -> Iterator[View]:
        """Yield the whole view whenever it or the connection changed; the newest wins. Confirms nothing.

        Args:
            interval: Seconds between two views at least.
        """
        handle = self._handle()
        followed: Followed = portal().call(handle.look_on)
        wake = threading.Event()
        stop = followed.feed.listen(wake.set)
        fold = Fold(handle.run_id)
        engine = handle.engine
        try:
            while True:
                wake.clear()
                end = followed.feed.end
                readable = followed.feed.readable
                if fold.position < readable:
                    listing.fold_up(fold, followed.feed, engine, followed.run, readable)
                yield listing.shown(fold, followed.feed, end)
                if end is not None and fold.position >= followed.feed.readable:
                    if end.error is not None:
                        raise end.error
                    return
                if followed.feed.end is None:
                    wake.wait()
                    time.sleep(interval)
        finally:
            stop()
            if not self._host.closed:
                portal().call(_leave, followed)

    def view(self) -> View:
        """Return the fold of the journal; no network."""
        row = self._current()
        engine = self._client._ready()
        if self._fold is None:
            self._fold = Fold(row.run_id or "")
        outcomes.catch_up(self._fold, engine.store, row.run, engine.profile)
        return listing.with_status(self._fold.view(), row, self.connection)

    def status(self) -> Status:
        """Ask the server. An unknown word is Status.UNKNOWN.

        Raises:
            NotFound, NotAuthorized, RemoteProtocolError, AttachError: It did not say.
        """
        return portal().call(self._handle().status)

    def wait(self, *, timeout: float | None = None) -> Outcome:
        """Follow to the end and return how it ended; failed or paused is an answer. Confirms nothing.

        Args:
            timeout: Seconds; None waits for ever.

        Raises:
            WaitTimeout: The time is over; the run goes on.
            ReattachError: It cannot be followed; see `Client.attach`.
        """
        return portal().call(self._handle().wait, timeout)

    def result(self, *, timeout: float | None = None) -> Any:
        """Follow to the end and return the JSON result.

        Args:
            timeout: Seconds; None waits for ever.

        Raises:
            RunFailed, RunCancelled, ActionRequired: It ended otherwise; `outcome` tells how.
            WaitTimeout: The time is over; the run goes on.
        """
        outcome = self.wait(timeout=timeout)
        row = self._current()
        return outcomes.result_of(outcome, row.key, row.committed.cursor)

    def ack(self, event: Event | None = None) -> None:
        """Confirm up to the event (default: the one in hand), durably when it returns.

        Raises:
            UsageError: Nothing is in hand, or the event was not handed out by this reader.
            LeaseLost: Another process took the run over.
        """
        self._client._ready()
        portal().call(self._handle().acknowledge, event)

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Return a transaction of the journal's database that confirms the event in hand, or rolls back.

        Nothing is taken before its first statement. Your rows and "this event is done" become durable together; if the block
        raises, both are undone and the event comes again, marked `redelivered`.

        Raises:
            UsageError: No event is in hand, another transaction is open here, or the journal has no SQL.
        """
        return _Leaving(self)

    def cancel(self, *, timeout: float = 30.0) -> Outcome:
        """Ask for the run to be cancelled, then wait for the truth: it may have completed. Cancelled is not rolled back.

        Args:
            timeout: Seconds until it must have settled.

        Raises:
            WaitTimeout: It has not; the request stands.
        """
        self._client._ready()
        return portal().call(self._handle().cancel, timeout)

    def detach(self) -> None:
        """Stop following; the run goes on. Twice is fine."""
        self._let_go()

    # ours ------------------------------------------------------------------------------------------------------------

    def _handle(self) -> Handle:
        engine = self._host.engine()
        if self._made is None or self._made.engine is not engine:
            self._made = Handle(engine, self._row, self._run_id, after=self._after, on_gap=self._on_gap)
        return self._made

    def _current(self) -> RunRow:
        if self._row is not None and self._row.run_id is not None and self._made is None:
            return self._row
        self._row = portal().call(self._handle().row)
        return self._row


class Transaction:
    """The user's transaction. Your tables may have any name that does not start with `reattach_`.

    Attributes:
        event: The event that leaving the block confirms.
    """

    def __init__(self, turn: Turn, event: Event) -> None:
        self._turn = turn
        self.event = event

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows.

        Raises:
            UsageError: It would end the transaction or touch the journal's own tables.
            StoreBusy: The transaction was open for 60 s and was rolled back.
        """
        return self._turn.execute(sql, parameters).result()

    def call(self, function: Callable[[Any], T]) -> T:
        """Return `function(connection)`, run on the writer's thread with the driver's connection; an ORM's session lives in it."""
        return self._turn.call(function).result()


class _Leaving(AbstractContextManager[Transaction]):
    """Enters and leaves a transaction."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._turn: Turn | None = None
        self._event: Event | None = None

    def __enter__(self) -> Transaction:
        engine = self._run._client._ready()
        handle = self._run._handle()
        self._turn = handle.turn()
        reading = handle.consumption
        assert reading is not None
        assert reading.in_hand is not None
        self._event = reading.in_hand
        engine.enter_turn(self._turn, threading.get_ident())
        return Transaction(self._turn, self._event)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        turn, event, handle = self._turn, self._event, self._run._made
        assert turn is not None
        assert event is not None
        assert handle is not None
        reading = handle.consumption
        try:
            if kind is not None:
                turn.rollback().result()
                if reading is not None:
                    reading.repeat()
                return
            try:
                turn.commit().result()
            except BaseException:
                if reading is not None:
                    reading.repeat()
                raise
            if reading is not None:
                reading.confirmed(event.position)
        finally:
            handle.engine.leave_turn(threading.get_ident())


def _owner() -> Owner:
    thread = threading.current_thread()
    return Owner(thread.ident or 0, thread.is_alive)


async def _leave(followed: Followed) -> None:
    followed.leave()
