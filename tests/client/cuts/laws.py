"""The laws: what must hold at each instant of every schedule, whatever was cut. Each broken one is a sentence.

Judged from what the application was handed, what is durable and what the server's log says; the client is never asked.
"""

from __future__ import annotations

from collections.abc import Callable

from client.cuts.process import Disk
from client.cuts.schedule import Schedule
from reattach import errors
from reattach.model import Event, Outcome
from reattach.testing import Leg, MemoryServer, Sent

STEPS = 400
"""Attaches after which a schedule is given up: no law needs as many."""


class Watch:
    """Watches one schedule.

    Args:
        schedule: What is played.
        server: The server.
        disk: The disk.
        now: The clock.
    """

    def __init__(self, schedule: Schedule, server: MemoryServer, disk: Disk, now: Callable[[], float]) -> None:
        self.broken: list[str] = []
        self.handed: list[Event] = []
        self.entry: int | None = None
        """The applied mark at this entry into the loop, until its first event has come."""
        self.highest = 0
        self.begun_at = 0
        """What was durable when the consumer began to read: no more can have been shown by another process."""
        self.ended = False
        self.refused = False
        self._schedule = schedule
        self._server = server
        self._disk = disk
        self._now = now
        self._count = 0
        self._streams = 0
        self._met: Leg | None = None
        """The plan that the last attach met: one of pages meets none."""
        self._last_attach: tuple[float, int] | None = None
        self._waits = 0
        self._parted: tuple[float, str, bool] | None = None
        self._attached: float | None = None
        self._previous: Event | None = None

    def say(self, law: str, detail: object = "") -> None:
        """A law is broken."""
        self.broken.append(f"{law}: {detail}")

    # while it goes on -------------------------------------------------------------------------------------------------

    def enters(self) -> None:
        """The application enters its loop."""
        self.entry = self._disk.applied
        self._previous = None
        self._last_attach = self._parted = self._attached = None  # perhaps a new subscription, which has not waited yet

    def consumes(self) -> None:
        """A consumer begins to read."""
        self.begun_at = self._disk.committed

    def noted(self, position: int) -> None:
        """An automatic mark is about to be kept."""
        if position > self.highest:
            self.say("applied <= delivered", f"{position} was confirmed, {self.highest} was handed out")

    def hands(self, event: Event) -> None:
        """The application is handed an event."""
        at = event.position
        if at > self._disk.committed:
            self.say("delivered <= committed", f"{event.id} at {at}, durable is {self._disk.committed}")
        if self._disk.applied > at:
            self.say("applied <= delivered", f"{self._disk.applied} is applied, {at} is shown")
        if self.entry is not None:
            if at != self.entry + 1:
                self.say("goes on after the last confirmed event", f"at {at}, confirmed were {self.entry}")
            self.entry = None
        elif self._previous is not None and at != self._previous.position + 1:
            self.say("in order", f"{at} after {self._previous.position}")
        self._previous = event
        if at <= self.highest:
            if not event.redelivered:
                self.say("repeats only when marked", f"{event.id} at {at}")
            if at < self.highest:
                self.say("only the event in hand comes again", f"{at} below {self.highest}")
        else:
            if at != self.highest + 1:
                self.say("exactly the log", f"{at} after {self.highest}")
            if event.redelivered and at > self.begun_at:
                self.say("marked only what may have been shown", f"{event.id} at {at}")
            self.highest = at
        self._check_content(event)
        self.handed.append(event)

    def _check_content(self, event: Event) -> None:
        run = self._server.run
        if event.gap is not None:
            if event.gap.reason not in run.happened:
                self.say("a gap has a cause", f"{event.gap} ({event.gap.reason}), happened: {sorted(run.happened)}")
            return
        logged = run.ever.get(event.id)
        if logged is None:
            self.say("exactly the log", f"{event.id} was never in it")
        elif (logged.type, logged.sequence, f"{logged.epoch}.{logged.sequence}") != (
            event.type,
            event.sequence,
            event.cursor,
        ):
            self.say("exactly the log", f"{event} is not {logged}")
        elif not logged.holds(event.data):
            self.say("exactly the log", f"{event.data} is not what is in {logged}")

    def attaches(self, sent: Sent) -> bool:
        """The server sees an attach; False: enough is enough."""
        self._count += 1
        durable = {self._disk.cursor}
        if self._disk.moved_at == self._disk.now():
            durable |= self._disk.before  # asked for just before, in the same instant
        if sent.after != "earliest" and sent.after not in durable:
            self.say("asked after what is committed", f"{sent.after}, durable is {self._disk.cursor}")
        self._check_pace(sent)
        self._check_waits(sent)
        legs = self._schedule.legs
        self._met = (legs[self._streams] if self._streams < len(legs) else Leg()) if sent.stream else None
        self._streams += sent.stream
        return self._count <= STEPS

    def _check_pace(self, sent: Sent) -> None:
        """A loss is seen when it happens, not at the next silence; a server that declines is left alone for a while."""
        policy = self._schedule.policy
        if self._parted is not None and not self._server.run.happened:
            at, how, closing = self._parted
            waited = sent.at - at
            if waited > policy.retry_ceiling + (policy.idle_timeout if how == "stall" else 0.0) + 1e-6:
                self.say("a loss is seen in time", f"{waited:g} s before attach {self._count} after {how}")
            if closing and waited < policy.retry_floor - 1e-6:
                self.say("never at once after a planned close", f"{waited:g} s before attach {self._count}")
        declined = self._met is not None and self._met.refuse == 204
        declined = declined and not self._server.run.happened  # else a boundary may be looked for
        if declined and self._attached is not None and sent.at - self._attached < policy.poll_interval - 1e-6:
            self.say("a server that declines is asked at the pace of the poll", f"{sent.at - self._attached:g} s")
        self._parted = None
        self._attached = sent.at

    def parts(self, how: str) -> None:
        """A connection ended at the server."""
        if how != "hold":
            leg = self._met or Leg()
            at = max(self._now(), (self._attached or 0.0) + (leg.delay or 0.0))
            self._parted = (at, how, leg.closing is not None)

    def _check_waits(self, sent: Sent) -> None:
        """Waits grow while connections bring nothing; judged where the widest wait is drawn and nothing else makes one."""
        faults = self._schedule
        if faults.jitter != 1.0 or faults.lags or any(leg.closing or leg.refuse == 204 for leg in faults.legs):
            return
        if any(beat.do not in ("event", "end") for beat in faults.beats):
            return
        now, has = sent.at, self._disk.committed
        before, had = self._last_attach or (now, -1)
        self._last_attach = (now, has)
        if has != had:
            self._waits = 0
            return
        policy = self._schedule.policy
        least = min(policy.retry_ceiling, policy.retry_base * 2.0**self._waits)
        self._waits += 1
        if now - before < least - 1e-6:
            self.say("waits grow without progress", f"{now - before:g} s before attach {self._count}, not {least:g}")

    # when it ends -----------------------------------------------------------------------------------------------------

    def fails(self, error: errors.ReattachError) -> bool:
        """The loop raised; True: the application tries again, False: it was told that there is no way on."""
        match error:
            case errors.CommitFailed() if self._disk.failed:
                return True
            case errors.ResumeRejected() if self._schedule.on_gap == "raise" and self._server.run.happened:
                self.refused = True
                return False
            case errors.NotFound() if self._server.run.happened and any(
                leg.refuse == 404 for leg in self._schedule.legs
            ):
                self.refused = True  # while a boundary is looked for, a missing run is believed at once
                return False
            case _:
                self.say("an error has a cause", f"{type(error).__name__}: {error}")
                return False

    def ends(self) -> None:
        """The loop ended by itself."""
        self.ended = True
        run = self._server.run
        if not run.settled:
            self.say("an end has evidence", f"the run is {run.status}, {self.highest} were shown")
        row = self._disk.journal.rows()[0]
        # A server that lost a tail and kept its epoch may end below what was read of it; the contract's rule is "at or below".
        lost = "diverged" in run.happened and row.committed.sequence > run.last
        if row.committed.epoch != run.epoch or (row.committed.sequence != run.last and not lost):
            self.say("exactly the log", f"ended at {row.committed}, the log at {run.epoch}.{run.last}")
        if self.highest != row.committed.position:
            self.say("exactly the log", f"ended after {self.highest}, the journal has {row.committed.position}")

    def outcome(self, outcome: Outcome) -> None:
        """The application was told how the run ended."""
        run = self._server.run
        if outcome.status.value != run.status:
            self.say("an end has evidence", f"told {outcome.status.value}, the run is {run.status}")
        if outcome.status.value == "completed" and outcome.result != run.result:
            self.say("the result is the run's", f"{outcome.result!r} is not {run.result!r}")

    def over(self) -> None:
        """All is over: judge the whole."""
        self._check_chain()
        if not self.ended and not self.refused and not self.broken:
            self.say("every schedule ends", f"{self.highest} were shown")
        if len(self._server.runs) > 1:
            self.say("one create, one run", sorted(self._server.runs))
        if self._server.wire.most_streams > 1:
            self.say("never two connections", self._server.wire.most_streams)
        bound = self._most_attaches()
        if self._count > bound:
            self.say("a bounded number of attaches", f"{self._count}, not {bound}")

    def _most_attaches(self) -> int:
        """Each planned leg, each life and each failed commit costs one; then a healthy connection is left alone."""
        faults = self._schedule
        happened = sum(beat.do not in ("event", "end") for beat in faults.beats)
        return 1 + len(faults.legs) + len(faults.lives) + self._disk.failed + 6 * happened

    def _check_chain(self) -> None:
        """What was shown is one log, read from its beginning; after a gap, from its boundary."""
        distinct = {event.position: event for event in self.handed}
        run = next(iter(self._server.runs.values()), None)
        last: Event | None = None
        for position in sorted(distinct):
            event = distinct[position]
            if event.gap is None and run is not None and (logged := run.ever.get(event.id)) is not None:
                if last is None or last.gap is None:
                    expected = None if last is None else last.id
                    if logged.prev_id != expected:
                        self.say("exactly the log", f"{event.id} follows {logged.prev_id}, shown after {expected}")
                elif last.gap.until not in (f"{logged.epoch}.{logged.sequence - 1}",):
                    self.say("goes on at the gap's boundary", f"{event.cursor} after {last.gap.until}")
            last = event
