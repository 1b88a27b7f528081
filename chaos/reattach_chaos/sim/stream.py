"""One streamed answer of the simulated server: which bytes are sent on it when, and which fault comes between which two of them.

The positions are the schedule's own: they lie in the bytes that this file makes, so nothing is parsed. What a fault does beyond
this connection (a restart, a new epoch, retention, a sleep) is the server's.
"""

from functools import partial
from typing import Any, Protocol

from reattach.testing import frames
from reattach.testing.model_run import Logged
from reattach_chaos.history import Close, Heartbeat, Received
from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.place import IN_EVENT, Place
from reattach_chaos.schedules.settings import setting, settings_of
from reattach_chaos.sim.clock import SimClock
from reattach_chaos.sim.plans import Plan, Plans
from reattach_chaos.sim.runs import SimRun
from reattach_chaos.sim.scribe import Scribe
from reattach_chaos.sim.wire import SimBody

HEARTBEAT_MS = 2_000
IDLE_S = 1.0
"""So long after an event, with none after it, a connection is idle."""


class Beyond(Protocol):
    """What a fault on a connection does beyond it."""

    def strike(self, plan: Plan, run: SimRun) -> bool:
        """Do it; False where it is nothing of the server's."""
        ...


class Pace:
    """How slowly a connection brings what it brings: seconds for each event, and bytes in one read (0: all)."""

    def __init__(self) -> None:
        self.delay = 0.0
        self.rate = 0.0
        self.read = 0

    def set(self, plan: Plan) -> None:
        """Slow down as a fault says."""
        settings = settings_of(plan.planned)
        self.delay += settings.get("delay_ms", 0) / 1000.0
        self.rate = settings.get("kb_per_s", 0) * 1000.0 or self.rate
        self.read = settings.get("bytes", 0) or self.read

    def seconds(self, size: int) -> float:
        """Return how long so many bytes take."""
        return self.delay + (size / self.rate if self.rate else 0.0)


class SimStream:
    """A subscriber of one run.

    Args:
        clock: The clock.
        run: The run.
        sequence: The number that it goes on after.
        conn: The connection's number in the case.
        due: The faults that are planned for this request.
        plans: All of them, to tell what fired.
        scribe: Who writes down.
        beyond: The server.
        pace: How slow it is.
        crlf: Lines end with CR LF.
    """

    def __init__(
        self,
        clock: SimClock,
        run: SimRun,
        sequence: int,
        conn: int,
        due: list[Plan],
        plans: Plans,
        scribe: Scribe,
        beyond: Beyond,
        pace: Pace,
        *,
        crlf: bool,
    ) -> None:
        self.body = SimBody()
        self.body.hung_up = self._hung_up
        self.run = run
        self.over = False
        self._clock = clock
        self._next = sequence + 1
        self._conn = conn
        self._due = due
        self._plans = plans
        self._scribe = scribe
        self._beyond = beyond
        self._pace = pace
        self._crlf = crlf
        self._replay = run.last
        self._sent = 0
        self._closed = False
        self._alarm: Any = None
        self._waits = False
        before = run.at(sequence)
        cursor_id = None if not sequence else before.id if before else run.forgotten_id
        head = frames.attached(
            sequence,
            run_id=run.id,
            epoch=run.epoch,
            last=run.last,
            cursor_id=cursor_id,
            heartbeat_ms=HEARTBEAT_MS,
            retry=None,
        )
        self._write(self._lines(head))

    # the server's side ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Send what there is, and live; by then the site knows it, so that what is done to the site ends it."""
        self._replayed()
        self.bring()
        self._begin_beat()

    def bring(self) -> None:
        """Send what the log has and this connection has not."""
        while not self.over and not self._waits and (event := self.run.at(self._next)) is not None:
            wait = self._pace.seconds(len(event.text))
            if wait > 0:
                self._waits = True
                self._clock.call_at(self._clock.now() + wait, self._bring_one)
                return
            self._event(event)
        if not self.over and not self._waits and self.run.settled and self._next > self.run.last:
            self._end("fin", by="server")
            self._strike_all(Place.AFTER_TERMINATOR)

    def close(self, reason: str | None) -> None:
        """End it between two events: saying why, or broken."""
        if not self.over:
            if reason is None:
                self._end("rst", by="server")
            else:
                self._write(self._lines(frames.closing(reason, retry=None)))
                self._end("fin", by="server")

    # inside -----------------------------------------------------------------------------------------------------------

    def _bring_one(self) -> None:
        self._waits = False
        event = self.run.at(self._next)
        if not self.over and event is not None:
            self._event(event)
        self.bring()

    def _event(self, event: Logged) -> None:
        """Send one event; or the part of it that comes before a cut."""
        self._next = event.sequence + 1
        block = self._lines(event.block)
        for plan in self._due:
            at = plan.planned.at
            part: int | None = None
            if at.place in IN_EVENT and at.event is not None and event.sequence >= at.event:
                part = within(at.place, block, at.width, crlf=self._crlf)
                if part is None:
                    self._plans.miss(plan, f"the event has nothing to cut {at.place.value}")
                    continue
            elif at.offset is not None and self._sent <= at.offset < self._sent + len(block):
                part = at.offset - self._sent
            if part is not None:
                self._write(block[:part])
                if part > block.index(b"\n"):
                    self._received(event, whole=False)
                self._act(plan, around=block[max(0, part - 12) : part].decode("utf-8", "replace"))
                return
        self._write(block)
        self._received(event, whole=True)
        self._behind(event)

    def _behind(self, event: Logged) -> None:
        """Do what comes just after an event's blank line."""
        for plan in list(self._due):
            at = plan.planned.at
            if self.over:
                return
            settles = event.sequence == self.run.last and self.run.settled
            if at.event is not None and event.sequence >= at.event:
                if at.place is Place.AFTER_EVENT or (at.place is Place.IN_REPLAY and event.sequence <= self._replay):
                    self._act(plan)
                elif at.place is Place.IDLE:
                    self._clock.call_at(self._clock.now() + IDLE_S, partial(self._idle, plan, event.sequence))
            elif at.place is Place.AFTER_TERMINAL and settles:
                self._act(plan)
        if not self.over:
            self._replayed()

    def _replayed(self) -> None:
        if self._next == self._replay + 1:
            self._strike_all(Place.BEFORE_LIVE)

    def _idle(self, plan: Plan, sequence: int) -> None:
        if not self.over and self._next == sequence + 1:
            self._act(plan)

    def _strike_all(self, place: Place) -> None:
        for plan in list(self._due):
            if plan.place is place and plan in self._due:
                self._act(plan)

    def _act(self, plan: Plan, around: str = "") -> None:
        """Let a fault come, now and on this connection once."""
        self._due.remove(plan)
        if plan.planned.fault is Fault.SUSPEND:
            self._beyond.strike(plan, self.run)  # what has slept is struck when it wakes
            self._plans.fire(plan, run=self.run.id, conn=self._conn, around=around)
            return
        self._plans.fire(plan, run=self.run.id, conn=self._conn, around=around)
        match plan.planned.fault:
            case Fault.FIN:
                self._end("fin-early")
            case Fault.RST:
                self._end("rst")
            case Fault.STALL | Fault.HALF_OPEN:
                self._end("silence")
            case Fault.EARLY_END:
                self._end("fin")
            case Fault.BROKEN_CHUNK:
                self._end("broken")
            case Fault.DUPLICATE:
                last = self._next - 1
                for sequence in range(max(self.run.first, last + 1 - setting(plan.planned, "events")), last + 1):
                    event = self.run.at(sequence)
                    if event is not None:
                        self._write(self._lines(event.block))
                        self._received(event, whole=True)
            case _:
                self._beyond.strike(plan, self.run)

    def _end(self, how: str, by: str = "gate") -> None:
        if self.over:
            return
        self.over = True
        if self._alarm is not None:
            self._alarm.cancel()
        match how:
            case "silence":
                return
            case "fin":
                self.body.fin()
            case "fin-early":
                self.body.reset("peer closed connection without sending complete message body")
            case "broken":
                self.body.reset("the size of a chunk is no number")
            case _:
                self.body.reset()
        self._close(by, "rst" if how == "rst" else "fin")

    def _hung_up(self) -> None:
        self.over = True
        if self._alarm is not None:
            self._alarm.cancel()
        self._close("client", "fin")

    def _close(self, by: str, how: str) -> None:
        if not self._closed:
            self._closed = True
            self._scribe.write(Close, run=self.run.id, conn=self._conn, by=by, how=how)

    def _received(self, event: Logged, *, whole: bool) -> None:
        self.run.end_told |= whole and self.run.settled and event.sequence == self.run.last
        self._scribe.write(
            Received,
            run=self.run.id,
            conn=self._conn,
            id=f"{event.epoch}.{event.sequence}",
            whole=whole,
            sequence=event.sequence,
            offset=self._sent,
        )

    def _write(self, data: bytes) -> None:
        if data:
            self._sent += len(data)
            size = self._pace.read
            self.body.send(data, reads=[size] * (len(data) // size) if size else ())

    def _lines(self, block: bytes) -> bytes:
        return block.replace(b"\n", b"\r\n") if self._crlf else block

    def _begin_beat(self) -> None:
        if not self.over:
            self._alarm = self._clock.call_at(self._clock.now() + HEARTBEAT_MS / 1500.0, self._beat)

    def _beat(self) -> None:
        if self.over:
            return
        inside = next((plan for plan in self._due if plan.place is Place.IN_COMMENT), None)
        if inside is not None:
            self._write(b":")
            self._act(inside)
            return
        self._write(self._lines(b":\n"))
        self._scribe.write(Heartbeat, run=self.run.id, conn=self._conn)
        self._strike_all(Place.AFTER_COMMENT)
        self._begin_beat()


def within(place: Place, block: bytes, width: int | None, *, crlf: bool) -> int | None:
    """Return how many bytes of an event's block come before a place inside it; None where it has no such place."""
    id_end = block.index(b"\n")
    event_end = block.index(b"\n", id_end + 1)
    data_end = block.index(b"\n", event_end + 1)
    match place:
        case Place.IN_CHUNK_SIZE:
            return 0
        case Place.IN_FIELD_NAME:
            return 1
        case Place.IN_ID_LINE:
            return id_end - (2 if crlf else 1)
        case Place.AFTER_ID_LINE:
            return id_end + 1
        case Place.IN_EVENT_LINE:
            return (id_end + event_end) // 2
        case Place.IN_DATA_LINE:
            return (event_end + data_end) // 2
        case Place.IN_LINE_END:
            return data_end if crlf else None
        case Place.IN_CHARACTER:
            found = block.find({2: "Ü", 3: "€", 4: "🙂"}[width or 2].encode())
            return None if found < 0 else found + 1
        case _:  # before the blank line
            return len(block) - (2 if crlf else 1)
