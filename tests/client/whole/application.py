"""The application on its stage: a model server, a journal, one process after another, and the laws that hold at every step.

What the machine of `test_whole_client.py` does, done; each method is one thing that an application, a network or a server does.
`check` judges from what the application was handed, what is durable and what the server's log says. A broken law is a sentence
in `broken`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import reattach
from client.cuts.schedule import HEARTBEAT_MS, POLICY
from client.whole.process import CountedWriter, Door, MortalWire
from client.whole.reader import Place, Reader, Stopped
from reattach import errors
from reattach.core.subscription import step
from reattach.model import Event, OnGap
from reattach.policy import Policy
from reattach.runtime.engine import Step
from reattach.runtime.loop import Soon
from reattach.runtime.setup import Seams
from reattach.runtime.writer import InlineWriter, Writer
from reattach.stores.base import Holder, Store
from reattach.stores.entry import event_of
from reattach.stores.memory import MemoryStore
from reattach.stores.sqlite.store import SqliteStore
from reattach.testing import Beat, MemoryServer, Sent, VirtualClock
from reattach.testing.memory_server import URL
from reattach.testing.model_run import ModelRun

MAIN, HAND, BILL = "main", "hand", "bill"
"""The consumers: asking for the next confirms; `ack` confirms; only a transaction with a row of ours confirms."""
CONSUMERS = (MAIN, HAND, BILL)
REAL = 60.0
"""Real seconds for one step, which needs some thousandths."""
PATIENT = Policy(
    **{name: getattr(POLICY, name) for name in POLICY.__slots__ if name != "give_up_after"},  # type: ignore[arg-type]
    give_up_after=None,
)


class HandlerFails(Exception):
    """The application's own fault, inside a transaction."""


class Application:
    """One application.

    Args:
        path: The journal's file; None keeps it in memory, without transactions.
        on_gap: What the first process does where events cannot be had.
        machine: The core.
    """

    def __init__(self, path: Path | None, on_gap: OnGap, machine: Step = step) -> None:
        self.broken: list[str] = []
        self.path = path
        self.on_gap = on_gap
        self.clock = VirtualClock(busy=self._busy)
        self.server = MemoryServer(self.clock, heartbeat_ms=HEARTBEAT_MS, continuations=[()] * 99)
        self.server.attached = self._attached
        self.places: dict[tuple[str, str], Place] = {}
        self.readers: dict[tuple[str, str], Reader] = {}
        self.started: dict[str, reattach.AsyncRun | None] = {}
        """The keys that the application gave work, with the newest handle of this process."""
        self.told: set[str] = set()
        """The runs of which an outcome was handed out, or may have been."""
        self.full = False
        """The disk of this process was full once."""
        self.deaths = 0
        self.unanswered = 0
        """Status reads that were planned to fail; a read gives up at the third."""
        self._machine = machine
        self._memory = MemoryStore(wall=self.clock.time, alive=self._alive)
        self._dead: set[str] = set()
        self._durable: dict[str, set[str | None]] = {}
        self._writer: CountedWriter | None = None
        self._kept: dict[str, dict[int, list[Event]]] = {}
        """What was pruned: a reader may have read ahead."""
        self.loop = asyncio.new_event_loop()
        if path is not None:
            with sqlite3.connect(path) as connection:
                connection.execute("CREATE TABLE bill (run TEXT, position INTEGER, event TEXT)")
            connection.close()
        self.do(self._begin)

    # the stage --------------------------------------------------------------------------------------------------------

    def do(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Let something happen, and everything come to rest that needs no time; then judge."""

        async def whole() -> Any:
            result = await work()
            await self.pass_time(0.0)
            if not self.door.alive:
                await self.after_death()
            await self.check()
            return result

        return self.loop.run_until_complete(asyncio.wait_for(whole(), REAL))

    def say(self, law: str, detail: object = "") -> None:
        """A law is broken."""
        self.broken.append(f"{law}: {detail}")

    def _busy(self) -> bool:
        return self._writer is not None and self._writer.busy

    def _alive(self, holder: Holder) -> bool:
        return holder.client not in self._dead

    def _write(self, store: Store, soon: Soon) -> Writer:
        if self.path is None:
            return InlineWriter(store, soon)
        self._writer = CountedWriter(store, soon)
        return self._writer

    async def _begin(self) -> None:
        """A process begins."""
        journal = self._memory if self.path is None else SqliteStore(self.path, wall=self.clock.time, alive=self._alive)
        self.door = Door(journal, self._dead)
        self.full = False
        self.client = reattach.AsyncClient(
            URL,
            self.door,
            transport=MortalWire(self.server.wire, self.door),
            policy=PATIENT,
            on_gap=self.on_gap,
            _seams=Seams(clock=lambda: self.clock, writer=self._write, step=self._machine),
        )
        await self.client.__aenter__()

    async def _end(self) -> None:
        for reader in self.readers.values():
            await reader.end()
        self.readers.clear()
        self.started = dict.fromkeys(self.started)
        await self.client.close()
        if self.server.wire.open_streams:
            self.say("closing is clean", f"{self.server.wire.open_streams} streams are open")
        mine = asyncio.current_task()
        left = [task for task in asyncio.all_tasks() if task is not mine and "wait_for" not in repr(task)]
        if left:
            self.say("closing is clean", left)

    async def after_death(self) -> None:
        """The process is dead; the next one begins."""
        self.deaths += 1
        await self._end()
        self.door.bury()
        await self._begin()

    async def crash(self, on_gap: OnGap) -> None:
        """Kill the process between two of its steps."""
        self.on_gap = on_gap
        self.door.die()

    async def close(self, on_gap: OnGap, *, waiting: bool) -> None:
        """End the process in good order, perhaps while readers wait; the next one begins."""
        blocked = [reader for reader in self.readers.values() if reader.pending is not None] if waiting else []
        self.on_gap = on_gap
        if blocked:
            await self.client.close()
            await self.client.close()
            for reader in blocked:
                try:
                    told = await asyncio.wait_for(asyncio.shield(reader.pending), REAL)  # type: ignore[arg-type]
                except errors.Closed:
                    continue
                except (errors.ReattachError, Stopped) as error:
                    self.say("who waits while it is closed gets Closed", repr(error))
                else:
                    self.say("who waits while it is closed gets Closed", told)
        await self._end()
        for row in self.door.inner.rows() if self.path is None else ():
            for consumer in ("", *CONSUMERS):
                if self.door.inner.holder(row.run, consumer) is not None:
                    self.say("closing is clean", f"the lease of {consumer!r} is still held")
        await self._begin()

    def close_for_good(self) -> None:
        """The test is over."""
        self.loop.run_until_complete(asyncio.wait_for(self._end(), REAL))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and hand the application what came meanwhile."""
        await self.clock.elapse(seconds)
        for reader in list(self.readers.values()):
            await self._harvest(reader)

    async def within(self, future: asyncio.Future[Any], seconds: float) -> bool:
        """Let time pass until it is done, so long at most; whether it is."""
        left, step = seconds, 0.1
        await self.clock.elapse(0.0)
        while not future.done() and left > 0 and self.door.alive:
            await self.clock.elapse(min(step, left))
            left, step = left - step, min(step * 2.0, 5.0)
        return future.done()

    # the application --------------------------------------------------------------------------------------------------

    async def calls(self, work: Awaitable[Any], seconds: float = 60.0) -> Any:
        """Await something of the client's; None if it failed with a cause, or was cancelled for taking too long."""
        task = asyncio.ensure_future(work)
        if not await self.within(task, seconds):
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            return None
        except Exception as error:
            self._judge(error)
            return None

    async def start(self, key: str, work: str = "work") -> None:
        """Start the work of a key, for the first time or again."""
        run = await self.calls(self.client.start(work, key=key))
        if key not in self.started or run is not None:
            self.started[key] = run
        if run is None or not self.door.alive:
            return
        job = [each.id for each in self.job(key)]
        if run.id not in job:
            self.say("a key is its job", f"{key} gave {run.id}, its runs are {job}")

    def used(self) -> set[str]:
        """The keys that the journal has; one whose intent found the disk full is as new."""
        return {row.key for row in self.door.inner.rows() if row.key is not None and row.key in self.started}

    async def start_other(self, key: str) -> None:
        """Use a key for other work."""
        before = len(self.server.wire.calls("POST", "/v1/runs"))
        try:
            await self.client.start("other work", key=key)
            self.say("other work is refused", key)
        except errors.KeyConflict:
            pass
        except errors.ReattachError as error:
            self._judge(error)
        if len(self.server.wire.calls("POST", "/v1/runs")) != before:
            self.say("other work is refused before anything is sent", key)

    def job(self, key: str) -> list[ModelRun]:
        """The runs of a key, as the server has them: the start and what goes on from it."""
        found = [run for run in self.server.runs.values() if run.key == key]
        while found and found[-1].continued_by is not None:
            found.append(self.server.runs[found[-1].continued_by])
        return found

    def known(self) -> list[ModelRun]:
        """The runs whose id the journal has."""
        ids = {row.run_id for row in self.door.inner.rows()}
        return [run for run in self.server.runs.values() if run.id in ids]

    def reader(self, run_id: str, consumer: str) -> Reader:
        """The loop of a consumer over a run."""
        whose = (run_id, consumer)
        if whose not in self.readers:
            place = self.places.setdefault(whose, Place(run_id, consumer))
            manual = consumer == HAND
            run = self.client.attach(run_id, consumer=consumer, ack="manual" if manual else "auto")
            self.readers[whose] = Reader(place, run, self.loop, manual=manual)
        return self.readers[whose]

    async def read(self, reader: Reader, count: int, patience: float) -> None:
        """Loop for so many events."""
        if reader.place.consumer == BILL and reader.in_hand is not None and not reader.again:
            await self.bill(reader, "commits")  # asked for in an earlier step, and come in between
        for _ in range(count):
            self.ask(reader)
            assert reader.pending is not None
            if not await self.within(reader.pending, patience):
                reader.cancel()
                await self.within(reader.pending, 0.0)
            got = await self._harvest(reader)
            if got is None or not self.door.alive:
                return
            if reader.place.consumer == BILL:
                await self.bill(reader, "commits")

    def ask(self, reader: Reader) -> None:
        """Ask for the next event, if that is not asked for yet."""
        if reader.pending is not None:
            return
        if reader.last is None:
            row = self._row(reader.place.run_id)
            applied = self.door.inner.applied(row.run, reader.place.consumer)
            self.broken += reader.place.settle(applied)
            reader.began, reader.behind = applied, row.committed.position
        reader.next()

    async def stop(self, reader: Reader) -> None:
        """Cancel a reader that waits."""
        reader.cancel()
        await self.clock.elapse(0.0)
        await self._harvest(reader)

    async def again(self, reader: Reader) -> None:
        """The loop was left by `break`, or its body raised; it is entered again."""

        async def entered() -> None:
            reader.run.__aiter__()

        if reader.pending is None and await self._does(reader, entered):
            reader.enter()

    async def detach(self, reader: Reader, *, done: bool) -> None:
        """Leave it: by `detach`, or (done) by the normal end of its `async with`."""
        if done and reader.in_hand is not None and not reader.again and not reader.manual:
            reader.place.perhaps(reader.in_hand.position)
        leave = (lambda: reader.run.__aexit__(None, None, None)) if done else reader.run.detach
        if await self._does(reader, leave):
            reader.enter()

    async def ack(self, reader: Reader, event: Event | None) -> None:
        """Confirm up to an event, or the one in hand."""
        at = event or reader.in_hand
        assert at is not None
        reader.place.perhaps(at.position)
        if await self._does(reader, lambda: reader.run.ack(event)):
            reader.place.confirmed(at.position)
            if reader.in_hand is not None and reader.in_hand.position <= at.position:
                reader.again = False
                if not reader.manual:
                    reader.in_hand = None

    async def bill(self, reader: Reader, how: Literal["commits", "raises", "dies"]) -> None:
        """Handle the event in hand in a transaction that writes a row; in memory, by `ack`."""
        event = reader.in_hand
        if event is None or not self.door.alive:
            return
        if self.path is None:
            await self.ack(reader, None)
            return
        place = reader.place

        async def transaction() -> None:
            async with reader.run.transaction() as tx:
                row = (place.run_id, event.position, event.id)
                await tx.execute("INSERT INTO bill VALUES (?, ?, ?)", row)
                if how == "raises":
                    raise HandlerFails
                if how == "dies":
                    self.door.light(1, after=False)

        if how == "commits":
            place.perhaps(event.position)
            place.doubtful = event.position
        if await self._does(reader, transaction):
            place.confirmed(event.position)
            place.rows.append(event.position)
            place.doubtful = None
            reader.in_hand, reader.again = None, False
        elif self.door.alive:
            reader.again = True

    async def _does(self, reader: Reader, work: Callable[[], Awaitable[Any]]) -> bool:
        """Do something in a reader's task; whether it went well."""
        future = reader.ask(work)
        if not await self.within(future, 10.0):
            self.say("what needs no server comes to an end", repr(work))
            return False
        try:
            future.result()
        except HandlerFails:
            return False
        except Exception as error:
            self._judge(error)
            return False
        return self.door.alive

    async def respond(self, run_id: str) -> None:
        """Answer what a paused run waits for, with a doubt about the answer's answer; twice, sometimes."""
        run = self.client.attach(run_id)
        self.told.add(run_id)
        outcome = await self.calls(run.wait())
        if outcome is None or not outcome.required_actions or not self.door.alive:
            return
        made = await self.calls(run.respond(*[action.approve() for action in outcome.required_actions]))
        if made is not None and self.door.alive:
            paused = self.server.runs[run_id]
            if made.id != paused.continued_by:
                self.say("answers go on once", f"{made.id}, the server's is {paused.continued_by}")

    async def cancel(self, run_id: str) -> None:
        """Cancel a run."""
        self.told.add(run_id)
        outcome = await self.calls(self.client.attach(run_id).cancel(timeout=30.0))
        run = self.server.runs[run_id]
        if outcome is not None and self.door.alive and outcome.status.value != run.status:
            self.say("cancelling tells the truth", f"told {outcome.status.value}, it is {run.status}")

    async def look(self, run_id: str) -> None:
        """Look at the view: it is the fold of the journal."""
        view = await self.calls(self.client.attach(run_id).view())
        if view is None or not self.door.alive:
            return
        text, gaps = "", []
        for event in self.journal(run_id):
            if event.gap is not None:
                gaps.append(event.gap)
                text = "" if event.gap.snapshot is not None else text
            text += event.text
        if view.text != text:
            self.say("the view is the fold of the journal", f"{view.text!r}, the texts are {text!r}")
        if list(view.gaps) != gaps:
            self.say("gaps are in the view", f"{view.gaps}, journaled are {gaps}")

    async def status(self, run_id: str) -> None:
        """Ask for the status."""
        word = await self.calls(self.client.attach(run_id).status(), 20.0)
        if word is not None and self.door.alive and word.value != self.server.runs[run_id].status:
            self.say("the status is the server's", f"{word.value}, it is {self.server.runs[run_id].status}")

    async def unfinished(self) -> None:
        """List what needs something."""
        listed = await self.calls(self.client.runs(unfinished=True))
        if listed is None or not self.door.alive:
            return
        names = {run.key if not run.id else run.id for run in listed}
        for row in self.door.inner.rows():
            name = row.run_id or row.key
            behind = row.run_id is not None and self._behind(row.run_id, row.committed.position)
            if name is not None and name not in names and (row.outcome is None or behind):
                self.say("what is unfinished is listed", f"{name} is not in {names}")

    def _behind(self, run_id: str, last: int) -> list[Place]:
        """Who has not confirmed all of a run. One whose outcome was told, and of which nobody confirmed anything, is done with.

        A loop that was cancelled before it was given a lease is nobody yet.
        """
        known = self.door.inner.consumers(self._row(run_id).run)
        places = [
            place
            for (each, consumer), place in self.places.items()
            if each == run_id and place.begun and (place.handed or consumer in known)
        ]
        if run_id in self.told and not any(place.low for place in places):
            return []
        return [place for place in places if place.high < last]

    async def prune(self) -> None:
        """Remove what is done with."""
        before = {run.id: self.journal(run.id) for run in self.known()}
        if await self.calls(self.client.prune(older_than=0)) is None or not self.door.alive:
            return
        for run_id, events in before.items():
            left = self.journal(run_id)
            if len(left) == len(events):
                continue
            for event in events:
                self._kept.setdefault(run_id, {}).setdefault(event.position, []).append(event)
            behind = self._behind(run_id, events[-1].position)
            if behind:
                self.say("nothing is pruned that somebody has not confirmed", behind)

    # what it was handed -----------------------------------------------------------------------------------------------

    async def _harvest(self, reader: Reader) -> Event | None:
        """Take what a reader was handed; None if there is nothing, or no event."""
        future = reader.pending
        if future is None or not future.done():
            return None
        reader.pending = None
        if not self.door.alive:
            if not future.cancelled():
                future.exception()
            return None
        try:
            event: Event | None = future.result()
        except Stopped:
            reader.doubtful = True
            reader.in_hand = reader.in_hand if reader.again else None
            return None
        except Exception as error:
            self._judge(error, reader.place.run_id)
            reader.enter()
            reader.doubtful = True
            return None
        if event is None:
            self._ended(reader)
            return None
        self._handed(reader, event)
        return event

    def _handed(self, reader: Reader, event: Event) -> None:
        place, at = reader.place, event.position
        before = reader.in_hand
        journal = self.journal(place.run_id)
        first = journal[0].position if journal else 0
        if reader.again and before is not None:
            expected = before.position
        elif reader.last is None:
            expected = max(reader.began + 1, first)
        else:
            expected = reader.last + 1
        if at != expected and not (expected < first == at):  # pruned: a gap stands there
            self.say("in order, nothing skipped", f"{place} was handed {at}, not {expected}")
        known = self._known(place.run_id)
        if at not in known:
            self.say("delivered <= committed", f"{place} was handed {at}, durable are {list(known)}")
        elif not any((each.id, each.data, each.gap) == (event.id, event.data, event.gap) for each in known[at]):
            self.say("what is shown is what is durable", f"{event} is not {known[at]}")
        if at <= place.handed and not event.redelivered:
            self.say("what comes again is marked", f"{place} was handed {at} before")
        if at > place.handed and event.redelivered and not (reader.doubtful and at <= reader.behind):
            self.say("only what may have been shown is marked", f"{place} never was handed {at}")
        if before is not None and not reader.again and not reader.manual:
            place.confirmed(before.position)
        place.handed = max(place.handed, at)
        reader.last, reader.in_hand, reader.again = at, event, False
        reader.seen.append(event)

    def _known(self, run_id: str) -> dict[int, list[Event]]:
        """What is durable, or was before it was pruned, by position."""
        known = {at: list(events) for at, events in self._kept.get(run_id, {}).items()}
        for event in self.journal(run_id):
            known.setdefault(event.position, []).append(event)
        return known

    def _ended(self, reader: Reader) -> None:
        place = reader.place
        run, row = self.server.runs[place.run_id], self._row(place.run_id)
        if reader.in_hand is not None and not reader.again and not reader.manual:
            place.confirmed(reader.in_hand.position)
        if not run.settled:
            self.say("an end has evidence", f"{place}: the run is {run.status}")
        if row.outcome is None or (row.committed.epoch, row.committed.sequence) != (run.epoch, run.last):
            self.say("it ends with the log", f"{place}: at {row.committed}, the log at {run.epoch}.{run.last}")
        if (reader.last or reader.began) != row.committed.position:
            self.say("it ends with the journal", f"{place}: after {reader.last or reader.began}, {row.committed}")
        reader.enter()

    def _judge(self, error: Exception, run_id: str | None = None) -> None:
        """An error has a cause, and its name."""
        if not self.door.alive:
            return
        gaps = any(
            run.happened and (run.id == run_id or run_id in (None, getattr(error, "run_id", None)))
            for run in self.server.runs.values()
        )
        match error:
            case errors.CommitFailed() if self.full:
                return
            case errors.ResumeRejected() if gaps:
                return
            case errors.WaitTimeout():
                return
            case errors.AttachError() if type(error) is errors.AttachError and self.unanswered >= 3:
                return
            case _:
                self.say("an error has a cause", f"{type(error).__name__}: {error}")

    # the laws ---------------------------------------------------------------------------------------------------------

    def _row(self, run_id: str) -> Any:
        return next(row for row in self.door.inner.rows() if row.run_id == run_id)

    def journal(self, run_id: str) -> list[Event]:
        """What is durable of a run."""
        return [event_of(entry.element, run_id, entry.position) for entry in self._entries(self._row(run_id).run)]

    def _entries(self, run: int) -> Iterable[Any]:
        found: list[Any] = []
        while more := self.door.inner.read(run, found[-1].position if found else 0, 1_000):
            found += more
        return found

    def _attached(self, sent: Sent) -> None:
        """The server sees an attach."""
        run_id = sent.path.split("/")[3].partition("?")[0]
        row = next((each for each in self.door.inner.rows() if each.run_id == run_id), None)
        durable = self._durable.setdefault(run_id, {None})
        if row is not None:
            durable.add(row.committed.cursor)
        if sent.after != "earliest" and sent.after not in durable:
            self.say("asked after what is durable", f"{sent.after} of {run_id}, durable were {durable}")

    async def check(self) -> None:
        """What holds whenever everything is at rest."""
        if not self.door.alive:
            return
        for row in self.door.inner.rows():
            if row.run_id is None:
                continue
            self._durable.setdefault(row.run_id, {None}).add(row.committed.cursor)
            self._check_chain(row)
            for consumer in CONSUMERS:
                place = self.places.get((row.run_id, consumer))
                applied = self.door.inner.applied(row.run, consumer)
                if applied > row.committed.position:
                    self.say("applied <= committed", f"{consumer} of {row.run_id}: {applied} > {row.committed}")
                if place is None:
                    continue
                if place.handed > row.committed.position:
                    self.say("delivered <= committed", f"{place}: {place.handed} > {row.committed}")
                reader = self.readers.get((row.run_id, consumer))
                if reader is None or reader.pending is None:
                    self.broken += place.settle(applied)
        self._check_rows()
        keys = [run.key for run in self.server.runs.values()]
        if len(set(keys)) != len(keys):
            self.say("one key, one run", keys)
        for key in self.started:
            if len([each for each in keys if each == key]) > 1:
                self.say("creates == 1", f"{key}: {keys}")
        if len(keys) > len(self.started) + sum(run.continued_by is not None for run in self.server.runs.values()):
            self.say("nothing else creates work", keys)
        if self.server.wire.open_streams > len(self.server.runs):
            self.say("one connection for all consumers of a run", self.server.wire.open_streams)

    def _check_chain(self, row: Any) -> None:
        """What is durable is the server's log from its beginning, in order; where it is not, a gap says so."""
        run, last = self.server.runs[row.run_id], None
        for event in self.journal(row.run_id):
            if last is not None and event.position != last.position + 1:
                self.say("no holes in the journal", f"{event.position} after {last.position}")
            if event.gap is not None:
                pruned = last is None and event.gap.reason == "expired"
                if event.gap.reason not in run.happened and not pruned:
                    self.say("a gap has a cause", f"{event.gap}, happened: {run.happened}")
                if last is not None and last.gap is None and event.gap.after != last.cursor:
                    self.say("a gap names where it begins", f"{event.gap.after} after {last.cursor}")
            else:
                logged = run.ever.get(event.id)
                if logged is None or not logged.holds(event.data) or logged.type != event.type:
                    self.say("exactly the log", f"{event} is not {logged}")
                elif last is None or last.gap is None:
                    if logged.prev_id != (last.id if last is not None else None):
                        self.say("exactly the log", f"{event.id} follows {logged.prev_id}, durable after {last}")
                elif last.gap.until != f"{logged.epoch}.{logged.sequence - 1}":
                    self.say("goes on at the gap's boundary", f"{event.cursor} after {last.gap.until}")
            last = event

    def _check_rows(self) -> None:
        """Each transaction's row is there exactly once, and exactly up to the mark."""
        if self.path is None:
            return
        with sqlite3.connect(self.path) as connection:
            found = connection.execute("SELECT run, position FROM bill ORDER BY run, position").fetchall()
        connection.close()
        for (run_id, consumer), place in self.places.items():
            if consumer != BILL:
                continue
            there = [position for each, position in found if each == run_id]
            expected = sorted(place.rows)
            if place.doubtful is not None and place.doubtful in there:
                expected = sorted([*expected, place.doubtful])
                place.rows.append(place.doubtful)
            place.doubtful = None
            if there != expected:
                self.say("rows exactly once", f"{place}: {there}, committed were {expected}")
            applied = self.door.inner.applied(self._row(run_id).run, BILL)
            if (there[-1] if there else 0) != applied:
                self.say("rows and mark are one", f"{place}: the last row is {there[-1:]}, the mark {applied}")

    # the end ----------------------------------------------------------------------------------------------------------

    async def everything_ends(self) -> None:
        """No more faults: every run ends, and every consumer is handed all of it."""
        self.door.heal()
        self.door.snuff()
        self.on_gap = "snapshot"
        await self.close("snapshot", waiting=False)
        for key in self.started:
            await self.start(key)
            if self.started[key] is None:
                self.say("a start comes to its end", key)
        for run in self.server.runs.values():
            if not run.settled:
                self.server.perform(run, Beat(do="end", data="ok"))
        for run in self.known():
            for consumer in (MAIN, *[name for each, name in self.places if each == run.id and name != MAIN]):
                reader = self.reader(run.id, consumer)
                for _ in range(2 * run.last + 50):
                    await self.read(reader, 1, 400.0)
                    if self.broken or reader.last is None:
                        break
                    if consumer == HAND and reader.in_hand is not None:
                        await self.ack(reader, None)
                row = self._row(run.id)
                applied = self.door.inner.applied(row.run, consumer)
                if not self.broken and applied != row.committed.position:
                    self.say("everything is delivered", f"{reader.place}: {applied} of {row.committed.position}")
                if not self.broken and (row.committed.epoch, row.committed.sequence) != (run.epoch, run.last):
                    self.say("everything is delivered", f"{row.committed}, the log at {run.epoch}.{run.last}")
