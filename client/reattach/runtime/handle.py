"""One run in the hands of an application: everything that is awaited, for both faces.

Holds nothing open until it is read. The blocking face calls these functions through the portal, the asynchronous one awaits
them; what both do without waiting (take the next event, confirm it) is in `Consumption`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

import anyio
import anyio.to_thread

from reattach import errors
from reattach.core.fold import Fold
from reattach.model import Answer, Connection, Event, Needs, OnGap, Outcome, Status, View
from reattach.profiles.base import Call, Reading
from reattach.runtime import asking, beginnings, creating, listing, looking, outcomes, pauses, places
from reattach.runtime.clock import within
from reattach.runtime.consumption import Consumption, Handed
from reattach.runtime.engine import Engine
from reattach.runtime.failures import Place
from reattach.runtime.followed import Followed
from reattach.stores.base import Busy, Lease, RunRow
from reattach.stores.entry import outcome_of

T = TypeVar("T")


class Handle:
    """A run of one engine.

    Args:
        engine: The client at work.
        row: The run if the journal has it.
        run_id: Its id otherwise; the journal learns of it when it is first read.
        after: Read only, from here: "beginning", "tail" or a cursor; None follows as the consumer.
        on_gap: What to do where events cannot be had.
        consumer: Whose mark.
        manual: Only `ack` and a transaction move it.
    """

    def __init__(
        self,
        engine: Engine,
        row: RunRow | None,
        run_id: str,
        *,
        after: str | None = None,
        on_gap: OnGap = "raise",
        consumer: str = "main",
        manual: bool = False,
    ) -> None:
        self.engine = engine
        self.run_id = run_id
        self.needs: Needs | None = None
        """What the run needed when it was last read from the journal."""
        self.consumption: Consumption | None = None
        self.unconfirmed: Consumption | None = None
        """A reader that came to its end, and whose events are still being confirmed: its lease is kept."""
        self.consumer = consumer
        self.manual = manual
        self._row = row
        self._after = after
        self._on_gap = on_gap
        self._followed: Followed | None = None
        self._claimed = False
        self._ended = False

    # the run ---------------------------------------------------------------------------------------------------------

    @property
    def last(self) -> RunRow | None:
        """The run's row as it was read last."""
        return self._row

    async def known(self) -> RunRow:
        """Return the run's row as it stands in the journal, adopted if it is attached by id. No network."""
        engine = self.engine

        def work() -> tuple[RunRow, Needs]:
            if self._row is None or not self._row.run:  # 0: the server told of it, the journal does not have it yet
                row = engine.store.adopt(engine.server, engine.profile.name, self.run_id)
            else:
                try:
                    row = engine.store.row(self._row.run)
                except KeyError as error:
                    if self._row.run_id is None:
                        become = creating.intended(engine.store, self._row)
                        if become is None:
                            raise self._forgotten(self._row) from error
                        row = become  # joined to its run, which was attached by id
                    else:
                        row = engine.store.adopt(engine.server, engine.profile.name, self.run_id)  # it was only a name
            return row, outcomes.needs_in(engine.store, row, self.consumer)

        self._row, self.needs = row, _ = await engine.post(work)
        self.run_id = row.run_id or self.run_id
        return row

    def _forgotten(self, row: RunRow) -> errors.UsageError:
        """A create that made no run, by its server's word or a person's, is no row of the journal any more."""
        what = f"start with key {row.key!r}" if row.key is not None else f"answer to run {row.continues!r}"
        return errors.UsageError(
            f"the {what} created nothing, and the journal has forgotten it.", key=row.key, hint="Give it again."
        )

    async def row(self) -> RunRow:
        """Return the run's row, with its id: created again, under its key, if the answer to its start was lost."""
        row = await self.known()
        if row.run_id is None:
            self._row = row = await creating.create(self.engine, row, new=False)
            self.run_id = row.run_id or ""
        return row

    @property
    def connection(self) -> Connection:
        """How the connection is now, whoever of this client keeps it."""
        followed = self._followed
        if followed is None and self._row is not None:
            followed = self.engine.following(self._row.run)
        if followed is not None:
            return followed.feed.connection
        ended = self._ended or (self._row is not None and self._row.outcome is not None)
        return Connection(phase="ended") if ended else Connection()

    def place(self, row: RunRow) -> Place:
        """Return where an error of this run happens."""
        engine = self.engine
        return Place(engine.server, engine.store.name, self.run_id, row.key, row.committed, engine.policy)

    # reading ---------------------------------------------------------------------------------------------------------

    async def consume(self) -> Consumption:
        """Begin to read: take the consumer's lease and follow the run. Cancelled or failed, nothing stays behind.

        Raises:
            RunBusy: Another process, or another client in this one, reads as this consumer.
        """
        row = await self.row()
        async with self.engine.leases.alone(row.run, self.consumer):
            return self.consumption or await self._consume(row)

    async def _consume(self, row: RunRow) -> Consumption:
        bare = await self._is_bare(row)
        if bare and (self._after is not None or self.consumer != places.MAIN):
            raise places.refuse_others(self.run_id)  # before a lease is taken, which would make it a consumer for ever
        before, self.unconfirmed = self.unconfirmed, None
        lease: Lease | None = None
        try:
            if before is not None and before.lease is not None and self.engine.leases.holds(before.lease):
                lease = before.lease
            elif self._after is None:
                lease = await self.take(row)
            return await self._begin(row, lease, before, bare)
        except BaseException:
            if lease is not None:
                await self.engine.leases.give_back(lease)
            raise

    async def take(self, row: RunRow) -> Lease:
        """Take the consumer's lease.

        Raises:
            RunBusy: Somebody else has it.
        """
        taken = await self.engine.leases.take(row.run, self.consumer)
        if isinstance(taken, Busy):
            raise self._busy(row, taken)
        return taken

    async def _begin(self, row: RunRow, lease: Lease | None, before: Consumption | None, bare: bool) -> Consumption:
        engine = self.engine
        applied = shown = handed = 0
        skip: Callable[[Event], bool] | None = None
        if lease is not None:
            applied, row = await engine.post(
                lambda: (engine.store.applied(row.run, self.consumer), engine.store.row(row.run))
            )
            if before is not None and before.lease == lease:
                shown, handed = before.shown, before.handed_out
            else:
                shown, handed = self._shown(row, lease, applied)
        else:
            skip = await beginnings.skip(self, row, self._after or "beginning")
        followed = self._followed = await engine.follow(row.run, self._on_gap)
        while bare and not followed.feed.claim(applied):
            followed.leave()
            await followed.supersede()
            followed = self._followed = await engine.follow(row.run, self._on_gap)
        self._claimed = bare
        self.consumption = Consumption(
            followed.feed,
            engine.store,
            row.run,
            self.run_id,
            lease,
            applied,
            shown,
            handed,
            engine.leases.holds,
            skip,
            self.manual,
            self._tell_applied if engine.observed else None,
        )
        return self.consumption

    def _tell_applied(self, count: int, cursor: str | None) -> None:
        self.engine.tell(self.run_id, "applied", self.consumer, cursor=cursor, count=count)

    def _shown(self, row: RunRow, lease: Lease, applied: int) -> tuple[int, int]:
        """Return up to where events may have been handed out before, and up to where they were by this very client.

        To a first reader nothing was, to any other all that is committed may have been. After this client, and nobody else in
        between, it is known exactly.
        """
        token, shown, handed = self.engine.leases.shown.get((row.run, self.consumer), Handed(0, applied))
        if lease.token == token + 1:
            return shown, handed
        return row.highest, 0

    def _busy(self, row: RunRow, busy: Busy) -> errors.RunBusy:
        holder = busy.holder
        return errors.RunBusy(
            f"run {self.run_id!r} is already followed as consumer {self.consumer!r} by pid {holder.pid} on {holder.host} "
            f"since {busy.since:%Y-%m-%d %H:%M:%S} UTC.",
            run_id=self.run_id,
            key=row.key,
            cursor=row.committed.cursor,
            hint='Use views() or after="beginning" to look on, consumer="…" for a second handler, or stop the other.',
        )

    async def end(self) -> None:
        """The loop came to its end, or to an error; with ack="manual" what was handed out can still be confirmed."""
        consumption = self.consumption
        if consumption is None or consumption.lease is None or not consumption.unconfirmed:
            await self.detach()
            return
        self.unconfirmed, self.consumption = consumption, None
        await self.engine.to_the_end(self._leave)

    async def detach(self) -> None:
        """Stop reading; the run goes on. Twice is fine; never raises."""
        if self.consumption is not None or self.unconfirmed is not None or self._followed is not None:
            await self.engine.to_the_end(self._let_go)

    async def _let_go(self) -> None:
        consumption = self.consumption or self.unconfirmed
        self.consumption = self.unconfirmed = None
        with anyio.CancelScope(shield=True):
            if consumption is not None and consumption.lease is not None:
                lease = consumption.lease
                self.engine.leases.shown[lease.run, lease.consumer] = Handed(
                    lease.token, consumption.shown, consumption.handed_out
                )
                await self.engine.leases.give_back(lease)  # what it noted is carried with it
            await self._leave()

    async def _leave(self) -> None:
        followed, self._followed = self._followed, None
        if followed is not None and self._claimed:
            self._claimed = False
            followed.feed.unclaim()
        if followed is not None:
            self._ended = followed.feed.end is not None and followed.feed.end.outcome is not None
            with anyio.CancelScope(shield=True):
                followed.leave()
                if followed.leaving:
                    await followed.wait_settled()

    def abandon(self) -> None:
        """Detach, some time, without waiting: the application dropped its handle. From any thread, also while collecting."""
        consumption, engine = self.consumption or self.unconfirmed, self.engine
        if consumption is None or engine.pid != os.getpid() or engine.closed:
            return
        if consumption.lease is not None:
            engine.leases.abandoned[consumption.lease.run, consumption.lease.consumer] = self._let_go
        engine.inbox(lambda: None if engine.closed else engine.spawn(self._detach_forgotten))

    async def _detach_forgotten(self) -> None:
        consumption = self.consumption or self.unconfirmed
        lease = None if consumption is None else consumption.lease
        if lease is not None:
            self.engine.leases.abandoned.pop((lease.run, lease.consumer), None)
        await self._let_go()

    # asking ----------------------------------------------------------------------------------------------------------

    async def reading(self) -> Reading:
        """Ask the server for the run.

        Raises:
            NotFound, NotAuthorized, RemoteProtocolError, AttachError, ReconnectExhausted: It did not say.
        """
        row = await self.row()
        return await self._read(row, self.engine.profile.status(self.run_id))

    async def _read(self, row: RunRow, call: Call) -> Reading:
        try:
            return await asking.reading(self.engine, self.place(row), call)
        except errors.NotFound:
            if self.engine.following(row.run) is None:
                await self.engine.forget(row.run)
            raise

    async def status(self) -> Status:
        """Ask the server for the run's status."""
        return (await self.reading()).status

    async def wait(self, timeout: float | None) -> Outcome:
        """Follow to the end and return how it ended.

        Raises:
            WaitTimeout: `timeout` seconds are over.
        """
        row = await self.known()
        if timeout is None or row.outcome is not None:
            return await self._wait()
        return await within(
            self.engine.clock,
            timeout,
            self._wait,
            self._late(row, f"has not ended within {timeout:g} s. It goes on.", "Wait again, or cancel() it."),
        )

    def _late(self, row: RunRow, what: str, hint: str) -> errors.WaitTimeout:
        return errors.WaitTimeout(
            f"run {self.run_id!r} {what}", run_id=self.run_id, key=row.key, cursor=row.committed.cursor, hint=hint
        )

    async def _wait(self) -> Outcome:
        row = await self.row()
        if row.outcome is not None and await self._is_bare(row):
            return await self._hand_out(row, outcome_of(row.outcome, self.run_id))  # what was shown is no matter here
        while True:
            followed = await self.engine.follow(row.run, self._on_gap)
            followed.feed.wait(+1)
            try:
                end = await followed.feed.ended()
                if isinstance(end.error, errors.NotFound):
                    await followed.wait_settled()  # so that the journal has forgotten what was only a name
                if end.error is not None and not followed.superseded:
                    raise end.error
                if end.outcome is not None:
                    return await self._hand_out(row, end.outcome)
            finally:
                followed.feed.wait(-1)
                followed.leave()

    async def _is_bare(self, row: RunRow) -> bool:
        """Whether only places of this run are on disk."""
        engine = self.engine
        return engine.bare or await engine.post(lambda: places.is_bare(engine.store, row.run))

    async def _hand_out(self, row: RunRow, outcome: Outcome) -> Outcome:
        """Return the outcome with what the journal holds, noted as handed out."""
        engine = self.engine

        def work() -> Outcome:
            engine.store.hand_out(row.run)
            if engine.bare or places.is_bare(engine.store, row.run):
                return outcome
            fold = Fold(self.run_id)
            outcomes.catch_up(fold, engine.store, row.run, engine.profile)
            return outcomes.complete(outcome, fold)

        whole = await engine.post(work)
        await self.known()
        return whole

    async def result(self, timeout: float | None) -> object:
        """Follow to the end and return the JSON result.

        Raises:
            RunFailed, RunCancelled, ActionRequired: It ended otherwise.
        """
        outcome = await self.wait(timeout)
        row = await self.known()
        return outcomes.result_of(outcome, row.key, row.committed.cursor)

    async def view(self, fold: Fold | None) -> tuple[Fold, View]:
        """Return the fold of the journal, grown from `fold` if one is given, and its view. No network."""
        engine = self.engine
        row = await self.known()
        if await self._is_bare(row):
            raise places.refuse_view(self.run_id)
        grown = fold if fold is not None else Fold(self.run_id)
        await anyio.to_thread.run_sync(outcomes.catch_up, grown, engine.store, row.run, engine.profile)
        return grown, listing.with_status(grown.view(), row, self.connection)

    async def cancel(self, timeout: float) -> Outcome:
        """Ask the server to cancel, then wait for the truth. A pause is left by it: its actions can be answered no more.

        Raises:
            WaitTimeout: It has not settled within `timeout` seconds, or the request was not answered; it stands where it was taken.
        """
        row = await self.row()
        if row.outcome is None or row.status == Status.REQUIRES_ACTION:
            began = self.engine.clock.now()
            call = self.engine.profile.cancel(self.run_id)
            late = self._late(
                row,
                f"has not answered a cancel within {timeout:g} s. It may have been taken.",
                "cancel() it again: to ask twice does no harm.",
            )
            reading = await within(self.engine.clock, timeout, lambda: self._read(row, call), late)
            timeout = max(0.0, timeout - (self.engine.clock.now() - began))
            if reading.outcome is not None and reading.outcome.status is Status.REQUIRES_ACTION:
                await self.engine.post(lambda: self.engine.store.need(row.run, "resolved"))
                outcome = await self.wait(timeout)
                return dataclasses.replace(outcome, required_actions=reading.outcome.required_actions)
        return await self.wait(timeout)

    async def respond(self, answers: Sequence[Answer]) -> tuple[RunRow, Needs]:
        """Answer the pause; return the row of the run that goes on from it, and what that one needs. See `pauses.respond`."""
        row = await self.row()
        reading = await self.reading() if row.outcome is None else None
        try:
            made = await pauses.respond(self.engine, row, answers, reading)
        finally:
            await self.known()  # also refused, the pause may be over
        return made, await self.engine.post(lambda: outcomes.needs_in(self.engine.store, made))

    async def look_on(self) -> looking.Look:
        """Follow without a consumer: for views. `Look.followed.leave` ends it."""
        row = await self.row()
        followed = await self.engine.follow(row.run, self._on_gap)
        try:
            if not await self._is_bare(row):
                return looking.Look(followed, Fold(self.run_id))
            return await looking.from_snapshot(self.engine, followed, self.place(row))
        except BaseException:
            followed.leave()
            raise
