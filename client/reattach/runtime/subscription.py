"""One followed run at work: tells the core what happened and does what it asks for, in order.

Lives in the engine's event loop and never blocks it. Inputs may come while effects are being performed (a store may answer at
once); they wait in a queue, so that the core sees one input at a time. Connections are numbered; what a closed one still says is
dropped here.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import anyio

from reattach.core.fold import Released
from reattach.core.messages import (
    Arrival,
    Attached,
    By,
    Close,
    Closed,
    Commit,
    CommitFailed,
    CommitGap,
    CommitOutcome,
    Committed,
    Declined,
    Deliver,
    Drained,
    Effect,
    Elapsed,
    Ended,
    Failure,
    Finish,
    Full,
    Heard,
    Hinted,
    Input,
    LeaseLost,
    Lost,
    Mark,
    Notice,
    Open,
    Opened,
    OutcomeCommitted,
    ReadSnapshot,
    ReadStatus,
    Received,
    Refusal,
    Refused,
    StartTimer,
    StopTimer,
    Why,
    Woke,
)
from reattach.core.rows_stream import WINDOW
from reattach.core.state import Rules, State
from reattach.model import Event, Gap, OnGap, Outcome
from reattach.profiles.base import Noted, Reader, Way
from reattach.runtime import failures, safety_net
from reattach.runtime.feed import End, Feed
from reattach.runtime.pages import Pages
from reattach.runtime.shown import connection_of
from reattach.runtime.timers import Timers
from reattach.runtime.wakes import Moment
from reattach.stores.base import GapNote, Lease, RunRow, Write
from reattach.stores.base import Refusal as WriteRefusal
from reattach.stores.entry import event_from, event_of, gap_element, outcome_json
from reattach.transports.base import Farewell, Stream, WireLost, WireOversize, WireRefused

if TYPE_CHECKING:
    from reattach.runtime.engine import Engine

KNOWN = WINDOW
"""Newest events whose identity the core is given, and from which a new connection's reader learns what came before."""
GATHERED_EVENTS = 4_000
GATHERED_BYTES = 1 << 20
"""More than this waiting for the disk, and the connection is not read until it has drained.

As many as one transaction takes: a commit asks for the interpreter's lock a dozen times and waits up to 5 ms each while this thread
is busy, so it lasts 60 to 100 ms of a burst, in which 2,000 events are read. A thousand were gathered before it ended."""
REFUSAL_BYTES = 65_536
GRACE = 1.0
"""Seconds that a transport waits longer for a head than the core does, whose limit is the one that counts."""


class Subscription:
    """Follows one run with the right to write its events.

    Args:
        engine: The client at work.
        row: The run, with its id.
        lease: The right to write.
        feed: What readers see.
        on_gap: The application's choice.
    """

    def __init__(self, engine: Engine, row: RunRow, lease: Lease | None, feed: Feed, on_gap: OnGap) -> None:
        self._engine = engine
        self._row = row
        self.lease = lease
        self.feed = feed
        self._run_id = row.run_id or ""
        profile = engine.profile
        rules = Rules(
            engine.policy, on_gap, profile.contiguous, engine.chosen.by, engine.chosen.falls_back, profile.replays
        )
        self.state = State(rules=rules)
        self._timers = Timers(engine.clock, lambda name: self.tell(Elapsed(name)))
        self._inputs: deque[Input] = deque()
        self._stepping = False
        self._waits_since = Moment(engine.clock)
        self._number = 0
        self._scope: anyio.CancelScope | None = None
        self._line = anyio.Lock(fast_acquire=True)  # held from the request until the connection is closed: never two
        self._recent: deque[Arrival | Event] = deque(maxlen=KNOWN)
        self._waiting_events = 0
        self._waiting_bytes = 0
        self._room = anyio.Event()
        self._replay_from = 0
        self._unwritten: str | None = None
        self.retry_in: float | None = None
        self.settled = anyio.Event()
        """Set when the subscription is over and none of its commits is in flight any more."""

    # inputs ----------------------------------------------------------------------------------------------------------

    def begin(self, known: list[Event], attached: Attached) -> None:
        """Start to follow, from what the journal holds."""
        self._recent.extend(known)
        if self.feed.bare:
            self.feed.drained = lambda: self._engine.soon(lambda: self.tell(Drained()))
        self.tell(attached)

    def tell(self, given: Input) -> None:
        """Give the core one fact and do what it asks for."""
        self._inputs.append(given)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._inputs:
                self.state, effects = self._engine.step(self.state, self._inputs.popleft())
                for effect in effects:
                    self._perform(effect)
            self._show()
        except Exception as error:  # a fault of ours: whoever waits is told, and timers and tasks of others go on
            self._break(error)
        finally:
            self._stepping = False
        if self.feed.full and self.state.mode in ("attaching", "live", "waiting"):
            self.tell(Full())

    def woke(self) -> None:
        """The machine slept, which is noticed seconds later: what the server wished for meanwhile counts from when it was said."""
        self.tell(Woke(self._waits_since.passed()))

    def close(self) -> None:
        """Stop following; commits in flight settle."""
        self.tell(Closed())
        self._check_settled()

    def _break(self, error: Exception) -> None:
        self._inputs.clear()
        self._hang_up()
        self._timers.stop_all()
        self.state = self.state._replace(mode="done")
        told = failures.of_fault(error, self._engine.store.name)
        told.__cause__ = error
        self._engine.tell(self._run_id, "failed", str(told), cursor=self.state.committed.cursor)
        self.feed.finish(End(None, told))
        self._check_settled()

    # effects ---------------------------------------------------------------------------------------------------------

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Deliver(position):
                self.feed.deliver(position)
            case Commit():
                self._commit(effect)
            case StartTimer(timer, low, high):
                seconds = low if high <= low else self._engine.clock.draw(low, high)
                if timer == "reconnect":
                    self.retry_in = seconds
                    self._waits_since = Moment(self._engine.clock)
                    self._engine.tell(self._run_id, "waiting", self.state.reason, attempt=self.state.attempt)
                self._timers.start(timer, seconds)
            case StopTimer(timer):
                self._timers.stop(timer)
            case Open(after, attempt, by):
                self._open(after, attempt, by)
            case Close():
                self._hang_up()
            case ReadStatus(era, attempt):
                self._engine.spawn(self._ask, safety_net.status, era, attempt)
            case ReadSnapshot(era):
                self._engine.spawn(self._ask, safety_net.snapshot, era)
            case CommitGap():
                self._commit_gap(effect)
            case CommitOutcome(prev, outcome):
                self._submit(prev, prev, OutcomeCommitted(outcome), outcome=outcome)
            case Finish(outcome, failure):
                self._finish(outcome, failure)
            case Notice(code, detail):
                if code == "unproven" and not self._engine.new_doubt(detail):
                    return
                self._engine.tell(self._run_id, code, detail, cursor=self.state.committed.cursor)

    async def _ask(self, question: Callable[..., Awaitable[Input]], *args: int) -> None:
        self.tell(await question(self._engine, self._run_id, *args))

    def _finish(self, outcome: Outcome | None, failure: Failure | None) -> None:
        self._timers.stop_all()
        error = None
        if failure is not None:
            place = failures.Place(
                self._engine.server,
                self._engine.store.name,
                self._run_id,
                self._row.key,
                self.state.committed,
                self._engine.policy,
                self._unwritten,
            )
            error = failures.error_of(failure, place)
            self._engine.tell(self._run_id, "failed", str(error), cursor=self.state.committed.cursor)
        elif outcome is not None:
            self._engine.tell(self._run_id, "finished", outcome.status.value, cursor=self.state.committed.cursor)
        self._show()
        self.feed.finish(End(outcome, error))
        self._check_settled()

    def _check_settled(self) -> None:
        if self.state.mode == "done" and self._waiting_events == 0:
            self.settled.set()

    def _show(self) -> None:
        self.feed.show(connection_of(self.state, self.retry_in, self._replay_from))

    # commits ---------------------------------------------------------------------------------------------------------

    def _commit(self, effect: Commit) -> None:
        prev, batch, mark = effect
        outcome = batch[-1].outcome
        size = sum(len(each.stored) for each in batch)

        def kept() -> None:
            self.feed.keep(self._run_id, prev.position + 1, batch, size)
            self._recent.extend(batch)
            self._engine.tell(self._run_id, "committed", cursor=mark.cursor, count=len(batch))
            self._tell_releases(prev.position + 1, batch)

        self._submit(prev, mark, Committed(mark, outcome=outcome), kept, batch=batch, size=size, outcome=outcome)

    def _tell_releases(self, first: int, batch: tuple[Arrival, ...]) -> None:
        for position, arrival in enumerate(batch, first):
            if arrival.kind == "status":
                for change in self._engine.profile.changes(event_from(arrival, self._run_id, position)):
                    if isinstance(change, Released):
                        self._engine.tell(self._run_id, "release", change.release, cursor=arrival.cursor)

    def _commit_gap(self, effect: CommitGap) -> None:
        prev, reason, mark, missing, state = effect
        note = GapNote(reason, prev.cursor, mark.cursor, missing, None if self.feed.bare else state)

        def kept() -> None:
            gap = Gap(
                run_id=self._run_id,
                reason=reason,
                after=prev.cursor,
                until=mark.cursor,
                missing=missing,
                snapshot=state,
            )
            self.feed.keep(
                self._run_id, mark.position, [event_of(json.loads(gap_element(gap)), self._run_id, mark.position)]
            )
            self._recent.clear()
            self._engine.tell(self._run_id, "gap", reason, cursor=mark.cursor, count=missing or 0)

        self._submit(prev, mark, Committed(mark, gap=True), kept, gap=note)

    def _submit(
        self,
        prev: Mark,
        mark: Mark,
        told: Input,
        kept: Callable[[], None] | None = None,
        *,
        batch: tuple[Arrival, ...] = (),
        size: int = 0,
        gap: GapNote | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        """Write; once it is durable, do `kept` and tell `told`. `size` is the batch's, in characters."""
        assert self.lease is not None
        write = Write(
            self._row.run,
            self.lease.token,
            prev,
            mark,
            batch,
            gap,
            outcome.status.value if outcome else "running",
            outcome_json(outcome) if outcome else None,
            self.feed.bare,
        )
        count = len(batch) or 1

        def done(result: WriteRefusal | BaseException | None) -> None:
            self._waiting_events -= count
            self._waiting_bytes -= size
            self._room.set()
            if result is None and kept is not None:
                kept()
            self._told(result, told, batch[0].cursor if batch else None)

        self._waiting_events += count
        self._waiting_bytes += size
        self._engine.writer.commit(write, done)

    def _told(self, result: WriteRefusal | BaseException | None, kept: Input, first: str | None) -> None:
        if result is not None and self._unwritten is None:
            self._unwritten = first
        match result:
            case None:
                self.tell(kept)
            case WriteRefusal(why="fenced", detail=detail):
                self.tell(LeaseLost(detail))
            case WriteRefusal(detail=detail):
                self.tell(CommitFailed(detail))
            case BaseException() as error:
                self.tell(CommitFailed(str(error) or type(error).__name__))
        self._check_settled()

    # the connection --------------------------------------------------------------------------------------------------

    def _open(self, after: str | None, attempt: int, by: By) -> None:
        self._number += 1
        self.retry_in = None
        self._replay_from = self.state.committed.sequence
        self._engine.tell(self._run_id, "attach", cursor=after, attempt=attempt)
        self._scope = anyio.CancelScope()
        self._engine.spawn(self._connect, self._number, self._scope, after, by)

    def _hang_up(self) -> None:
        self._number += 1
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    async def _connect(self, number: int, scope: anyio.CancelScope, after: str | None, by: By) -> None:
        with scope:
            try:
                async with self._line:  # one that was told to hang up may not have done it yet
                    await (self._attempt(number, after) if by == "stream" else self._page_through(number, after, by))
            except WireLost as error:
                self._heard_of(number, Lost(error.detail))
            except WireOversize as error:
                self._heard_of(number, Refused(Refusal(Why.OVERSIZE, str(error))))
            except WireRefused as error:
                self._heard_of(number, Refused(Refusal(Why.UNSENDABLE, error.detail)))

    async def _attempt(self, number: int, after: str | None) -> None:
        engine = self._engine
        call = engine.chosen.way.attach(self._run_id, after)
        request = await engine.calls.request(call, engine.policy.connect_timeout + GRACE)
        stream = await engine.wire.stream(request, max_event_bytes=engine.policy.max_event_bytes)
        try:
            if stream.status == 204:
                self._heard_of(number, Declined())
            elif stream.status not in (200, 101) or stream.objection is not None:
                await self._refused(number, stream)
            else:
                await self._read(number, stream)
        finally:
            with anyio.CancelScope(shield=True):
                await stream.aclose()
            if isinstance(stream, Farewell):
                engine.tell(self._run_id, "closed", stream.farewell or "")

    async def _refused(self, number: int, stream: Stream) -> None:
        body = await stream.body(REFUSAL_BYTES)
        if stream.status in (200, 101):
            begin = " ".join(body[:200].decode("utf-8", "replace").split())[:60]
            quote = f' ("{begin}")' if begin else ""
            refusal = Refusal(Why.FOREIGN, f"{stream.status} with {stream.objection}{quote}", stream.status)
        else:
            refusal = self._engine.chosen.way.refusal(stream.status, stream.headers, body)
        self._heard_of(number, Refused(refusal, self._left()))

    def _left(self) -> float | None:
        """Return the seconds that the budget still has, None for endless."""
        left = self._timers.left("budget")
        return self._engine.policy.give_up_after if left is None else left

    async def _read(self, number: int, stream: Stream) -> None:
        reader = self._reader(self._engine.chosen.way)
        beat_at: float | None = None
        while True:
            batch = await stream.read()
            if number != self._number:
                return
            if batch is None:
                self._heard_of(number, Ended())
                return
            if batch.retry is not None:
                self._heard_of(number, Hinted(batch.retry))
            told = reader.read(batch.frames) if batch.frames else ()
            if batch.frames or batch.growing:
                beat_at = None
            if not any(isinstance(each, Received) for each in told):
                beat = None
                if not batch.frames and not batch.growing:  # nothing but a sign of life: how far apart do they come?
                    now = self._engine.clock.now()
                    beat, beat_at = None if beat_at is None else now - beat_at, now
                self._heard_of(number, Heard(batch.growing, beat))
            await self._tell_all(number, told)
            if batch.frames:
                await anyio.lowlevel.checkpoint()  # a long replay must not starve the loop's other tasks (B06)

    async def _page_through(self, number: int, after: str | None, by: By) -> None:
        """Read events page by page, as long as this is the connection."""
        pages = Pages(self._engine, self._run_id, after, by, self._reader(self._engine.profile))
        while not pages.over and number == self._number:
            told = await pages.read()
            if number == self._number:
                await self._tell_all(number, told)

    def _reader(self, way: Way) -> Reader:
        reader = way.reader(self._run_id)
        reader.recall(self._recent)
        return reader

    async def _tell_all(self, number: int, told: Iterable[Input | Noted]) -> None:
        """Tell what one read or page brought, and read no further until the disk has room for more."""
        for each in told:
            if isinstance(each, Noted):
                self._engine.tell(self._run_id, each.name, each.detail)
                continue
            if isinstance(each, Received):
                newest = each.arrivals[-1].cursor
                self._engine.tell(self._run_id, "received", cursor=newest, count=len(each.arrivals))
            self._heard_of(number, each._replace(left=self._left()) if isinstance(each, Refused) else each)
            if isinstance(each, Opened):
                self._engine.tell(self._run_id, "attached", cursor=each.cursor, count=each.head or 0)
        if self._crowded:
            self._timers.stand("idle", "behind", "budget")  # we do not read: silence says nothing
            try:
                while self._crowded:
                    self._room = anyio.Event()
                    await self._room.wait()
            finally:
                self._timers.go_on()

    @property
    def _crowded(self) -> bool:
        return self._waiting_events > GATHERED_EVENTS or self._waiting_bytes > GATHERED_BYTES

    def _heard_of(self, number: int, given: Input) -> None:
        if number == self._number:
            self.tell(given)
