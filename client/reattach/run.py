"""The blocking face's Run: an iterator of its events, and what else may be asked of it. `async_run.py` is the same, awaited.

Waiting is done in the portal's thread; here is only what a reader does by itself: take the next event that may be read, confirm
the last one, sleep until there is more.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from reattach import errors
from reattach.core.fold import Fold
from reattach.model import Answer, Connection, Event, Needs, OnGap, Outcome, Status, View
from reattach.runtime import confirming, listing, looking
from reattach.runtime.consumption import Consumption, Owner
from reattach.runtime.feed import Feed
from reattach.runtime.handle import Handle
from reattach.runtime.host import Host
from reattach.stores.base import RunRow
from reattach.transaction import Entering, Transaction

if TYPE_CHECKING:
    from reattach.client import Client

T = TypeVar("T")


class Run:
    """A handle for one run: an iterator of its events, and a context manager. Holds nothing open until it is read.

    Made by `Client.start`, `Client.attach` and `Client.runs`. One loop at a time; different runs in different threads are fine.
    """

    def __init__(
        self,
        client: Client,
        host: Host,
        row: RunRow | None,
        run_id: str,
        *,
        after: str | None = None,
        on_gap: OnGap = "raise",
        consumer: str = "main",
        manual: bool = False,
        needs: Needs | None = None,
    ) -> None:
        self._client = client  # as long as somebody reads, it must not be collected
        self._host = host
        self._row = row
        self._run_id = run_id
        self._after = after
        self._on_gap = on_gap
        self._consumer = consumer
        self._manual = manual
        self._needs = needs
        self._made: Handle | None = None
        self._reading: Consumption | None = None
        self._wake = threading.Event()
        self._watcher: Callable[[Connection], None] | None = None
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
        if self._made is None and self._needs is not None:
            return self._needs
        self._call(self._handle().known)
        needs = self._handle().needs
        assert needs is not None
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
        reading = self._reading
        if reading is not None:
            reading.own(_owner())
            reading.rewind()
        return self

    def __next__(self) -> Event:
        """Confirm the event in hand and return the next one, as soon as it is on disk.

        Raises:
            StopIteration: The run has settled and every event was handed out.
            ReattachError: See `Client.attach`; the journal is intact, iterate again.
        """
        reading = self._reading
        if reading is not None and self._made is not None and self._made.engine.undisturbed:
            event = reading.swift(threading.get_ident())
            if event is not None:
                return event
        engine = self._host.engine()
        if reading is None:
            if self._ended:
                raise StopIteration
            reading = self._consume()
        reading.own(_owner())
        try:
            reading.confirm()
            while True:
                engine.check_open()
                reading.check_kept()
                self._wake.clear()
                end = reading.feed.end
                event = reading.take()
                if event is not None:
                    return event
                if reading.stored:
                    if reading.feed.bare:
                        self._let_go()
                        reading = self._consume()
                        continue
                    with engine.named_faults():
                        reading.load()
                    continue
                if end is not None and reading.exhausted:
                    break
                self._wake.wait()
        except errors.ReattachError:
            self._let_go(ended=True)
            raise
        self._ended = end.error is None and not reading.unconfirmed
        self._let_go(ended=True)
        if end.error is not None:
            raise end.error
        raise StopIteration

    def _consume(self) -> Consumption:
        handle = self._handle()
        reading = self._call(handle.consume)
        reading.own(_owner())
        self._reading = reading
        # The feed must not keep this run, and by it the client, from being collected.
        self._unlisten = reading.feed.listen(_waking(self._wake, self._watcher, reading.feed))
        self._forgotten = weakref.finalize(self, handle.abandon)
        self._forgotten.atexit = False
        return reading

    def _watch(self, watcher: Callable[[Connection], None]) -> None:
        """Have the connection told at every change, in the engine's thread, once this run is read: for our command line."""
        self._watcher = watcher

    def _let_go(self, *, ended: bool = False) -> None:
        """Stop reading; never raises (but for an interrupt), so that what ends a loop is told.

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
        self._wake.set()
        if self._host.alive:
            with suppress(errors.ReattachError):  # it was closed meanwhile, and everything with it
                self._call(self._made.end if ended else self._made.detach)

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._confirm_in_hand_here()
        self.detach()

    def _confirm_in_hand_here(self) -> None:
        """A `with` is left normally by this thread: the event that it has in hand is done with."""
        reading = self._reading
        if reading is not None and reading.owned_by(_owner()):
            with suppress(errors.LeaseLost):  # whoever took the run over sees the event again
                reading.confirm()

    # looking and asking ----------------------------------------------------------------------------------------------

    def views(self, *, interval: float = 0.05) -> Iterator[View]:
        """Yield the whole view whenever it or the connection changed; the newest wins. Confirms nothing.

        Args:
            interval: Seconds between two views at least.
        """
        handle = self._handle()
        look = self._call(handle.look_on)
        engine = handle.engine
        wake = threading.Event()
        stop = look.followed.feed.listen(wake.set)
        try:
            while True:
                wake.clear()
                feed = look.followed.feed
                end = feed.end
                with engine.named_faults():
                    whole = looking.grow(look, engine)
                if not whole or look.followed.superseded:
                    before, look = look, self._call(handle.look_on)
                    stop()
                    engine.soon(before.followed.leave)
                    stop = look.followed.feed.listen(wake.set)
                    continue
                yield listing.shown(look.fold, feed, end)
                if end is not None and look.fold.position >= feed.readable:
                    if end.error is not None:
                        raise end.error
                    return
                if feed.end is None:
                    wake.wait()
                    time.sleep(interval)
        finally:
            stop()
            engine.soon(look.followed.leave)  # without waiting: a dropped iterator is collected in any thread

    def view(self) -> View:
        """Return the fold of the journal; no network."""
        self._fold, view = self._call(self._handle().view, self._fold)
        return view

    def status(self) -> Status:
        """Ask the server. An unknown word is Status.UNKNOWN.

        Raises:
            NotFound, NotAuthorized, RemoteProtocolError, AttachError: It did not say.
        """
        return self._call(self._handle().status)

    def wait(self, *, timeout: float | None = None) -> Outcome:
        """Follow to the end and return how it ended; failed or paused is an answer. Confirms nothing.

        Args:
            timeout: Seconds; None waits for ever.

        Raises:
            WaitTimeout: The time is over; the run goes on.
            ReattachError: It cannot be followed; see `Client.attach`.
        """
        return self._call(self._handle().wait, timeout)

    def result(self, *, timeout: float | None = None) -> Any:
        """Follow to the end and return the JSON result.

        Args:
            timeout: Seconds; None waits for ever.

        Raises:
            RunFailed, RunCancelled, ActionRequired: It ended otherwise; `outcome` tells how.
            WaitTimeout: The time is over; the run goes on.
        """
        return self._call(self._handle().result, timeout)

    def ack(self, event: Event | None = None) -> None:
        """Confirm up to the event (default: the one in hand), durably when it returns.

        Raises:
            UsageError: Nothing is in hand, or the event was not handed out by this reader.
            LeaseLost: Another process took the run over.
        """
        self._call(confirming.acknowledge, self._handle(), event)

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Return a transaction of the journal's database that confirms the event in hand, or rolls back.

        Nothing is taken before its first statement. Your rows and "this event is done" become durable together; if the block
        raises, both are undone and the event comes again, marked `redelivered`.

        Raises:
            UsageError: No event is in hand, another transaction is open here, or the journal has no SQL.
        """
        return Entering(self._handle)

    def cancel(self, *, timeout: float = 30.0) -> Outcome:
        """Ask for the run to be cancelled, then wait for the truth: it may have completed. Cancelled is not rolled back.

        `outcome.operations` is the inventory: what took effect, what is in doubt, what cannot be undone; `client.operation`
        asks again. Cancelling a paused run leaves its pause: it stays `requires_action`, and takes no answers any more.

        Args:
            timeout: Seconds until it must have settled.

        Raises:
            WaitTimeout: It has not, or the request was not answered by then; where it was taken, it stands.
        """
        return self._call(self._handle().cancel, timeout)

    def respond(self, *answers: Answer) -> Run:
        """Answer everything that the paused run waits for, and return the run that goes on from it.

        The answers are on disk before they are sent. Repeating the same ones, also in the next process, gives the same run and
        sends nothing twice that could be taken twice. `start` with the job's key gives the newest run from here on.

        Args:
            answers: One for each of `outcome.required_actions`, in any order; the actions make them.

        Raises:
            UsageError: The run is not paused, or an answer does not fit its action. Nothing was sent.
            ActionsUnanswered: Some have no answer; the message names them. Nothing was sent.
            ActionResolved: The pause is over: somebody else answered, or it expired, lapsed or was cancelled.
            ApprovalStale: What the approval was given for has changed.
            NotAuthorized, AttachError, RemoteProtocolError: The server refused; nothing was created.
            ReconnectExhausted: No answer for policy.give_up_after s; respond again with the same answers.
            AmbiguousOutcome: They may have been taken, and cannot be sent again.
        """
        row, needs = self._call(self._handle().respond, answers)
        return self._client._made(
            Run(self._client, self._host, row, row.run_id or "", on_gap=self._on_gap, needs=needs)
        )

    def detach(self) -> None:
        """Stop following; the run goes on. Twice is fine.

        Raises:
            UsageError: A transaction is open here.
        """
        if self._reading is not None and self._host.alive:
            self._host.engine()
        self._let_go()

    # ours ------------------------------------------------------------------------------------------------------------

    def _call(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        return self._host.call(function, *args)

    def _handle(self) -> Handle:
        engine = self._host.engine()
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

    def _current(self) -> RunRow:
        if self._row is None or self._made is not None:
            self._row = self._call(self._handle().known)
        return self._row

    def _known(self, host: Host) -> RunRow | None:
        """The journal's row of this run for another handle of the same client."""
        return self._row if host is self._host else None


def _waking(wake: threading.Event, watcher: Callable[[Connection], None] | None, feed: Feed) -> Callable[[], None]:
    if watcher is None:
        return wake.set

    def changed() -> None:
        wake.set()
        watcher(feed.connection)

    return changed


def _owner() -> Owner:
    thread = threading.current_thread()
    return Owner(thread.ident or 0, thread.is_alive)
