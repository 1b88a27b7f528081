"""`MemoryServer`: a small server of the native protocol in memory, behind a `Wire`, that breaks what a test planned.

    clock = VirtualClock(autojump=True)
    server = MemoryServer(clock, beats=[Beat(after=1)] * 5 + [Beat(after=1, do="end")], legs=[Leg(cut=(3, 10), how="reset")])
    async with reattach.AsyncClient(URL, ":memory:", transport=server.wire, _seams=Seams(clock=lambda: clock)) as client:
        run = await client.start("work", key="k1")
        shown = [event.id async for event in run]
    assert shown == [event.id for event in server.run.log]

Deterministic: the log grows by the clock, and plans are used in order. It is written from the protocol and shares no decision
with the client. All of it lives in the client's event loop; a test in another thread reads it while the clock stands.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

import anyio

from reattach.runtime.clock import Clock
from reattach.testing import frames
from reattach.testing.acting import Acting, body_of, resolve, settle_pauses
from reattach.testing.answers import CallAnswer, StreamAnswer, as_socket, as_stream, refused, told
from reattach.testing.forms import Form, SocketForm, StreamForm
from reattach.testing.line import Line
from reattach.testing.model_run import ModelRun
from reattach.testing.plans import Beat, How, Leg, Trip
from reattach.testing.wire import Sent, Wire

URL = "http://memory.test"
_RUN = re.compile(r"/v1/runs/([^/?]+)(/events|/snapshot|/cancel)?\Z")
_OPERATION = re.compile(r"/v1/operations/([^/]+)\Z")
_SESSION = re.compile(r"/v1/sessions/([^/]+)/runs\Z")


class MemoryServer:
    """A server, its runs and its faults.

    Args:
        clock: The client's.
        beats: What happens to each run from its create on.
        legs: Plans for attaches, in order.
        creates: Plans for creates.
        statuses: Plans for status reads.
        snapshots: Plans for snapshot reads.
        heartbeat_ms: What a stream states and keeps, in milliseconds.
        continuations: What happens to each run that goes on from a pause, in order, in place of `beats`; then: it ends.
        keys: Whether the key of a create is "honoured", or taken and "ignored", as a bad server does it.
        inventory: The operations that a `run.cancelled` names.
        pages: Plans for pages of events.
        page_events: The most events that one page holds.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        beats: Iterable[Beat] = (),
        legs: Iterable[Leg] = (),
        creates: Iterable[Trip] = (),
        statuses: Iterable[Trip] = (),
        snapshots: Iterable[Trip] = (),
        heartbeat_ms: int = 15_000,
        continuations: Iterable[Iterable[Beat]] = (),
        keys: Literal["honoured", "ignored"] = "honoured",
        inventory: dict[str, Any] | None = None,
        pages: Iterable[Trip] = (),
        cancels: Iterable[Trip] = (),
        page_events: int = 100,
    ) -> None:
        self.wire = Wire(clock=clock, server=self)
        self.runs: dict[str, ModelRun] = {}
        self.attached: Callable[[Sent], None] | None = None
        """Called with every attach, before it is answered."""
        self.ended: Callable[[str], None] | None = None
        """Called when nothing more comes on a connection that the client still has: "fin", "reset", "stall" or "hold"."""
        self._clock = clock
        self._heartbeat_ms = heartbeat_ms
        self.acting = Acting(self.runs, keys)
        """Pauses, sessions and operations."""
        self.key_retention_ms: int | None = None
        """For how long keys are remembered, as discovery tells it; None: no limit is stated."""
        self._inventory = inventory or {}
        self._plots: dict[str, tuple[Beat, ...]] = {}
        self._beats = tuple(beats)
        self._continuations = deque(tuple(each) for each in continuations)
        self._legs = deque(legs)
        self._trips = {"create": deque(creates), "status": deque(statuses), "snapshot": deque(snapshots)}
        self._trips |= {"events": deque(pages), "cancel": deque(cancels)}
        self._page_events = page_events
        self._waiting: set[anyio.Event] = set()  # long polls
        self._lines: dict[str, list[Line]] = {}

    @property
    def run(self) -> ModelRun:
        """The only run."""
        (run,) = self.runs.values()
        return run

    # the log ----------------------------------------------------------------------------------------------------------

    def create(self, key: str = "key", request: bytes = b"{}") -> ModelRun:
        """Create a run, as a client's create does; its beats begin."""
        body = body_of(request)
        paused = self.runs.get(str(body.get("continues")))
        run = ModelRun(f"run_{len(self.runs) + 1}", key, request)
        run.session_id = paused.session_id if paused is not None else str(body.get("session_id") or f"ses_{run.id[4:]}")
        settle_pauses(self.runs, None if paused is not None else run.session_id, "lapsed")
        self.runs[run.id] = run
        self._lines[run.id] = []
        run.append("run.created", {"session_id": run.session_id, "continues": body.get("continues")})
        beats = self._beats
        if paused is not None:
            resolve(paused, run, body)
            beats = self._continuations.popleft() if self._continuations else (Beat(do="end", data="ok"),)
        self._plots[run.id] = beats
        self._beat(run, 0, self._clock.now())
        return run

    def perform(self, run: ModelRun, beat: Beat) -> None:
        """Let something happen to a run now, and tell who is attached."""
        match beat.do:
            case "event":
                run.append(beat.type, beat.data)
            case "end":
                run.append("run.completed", {"result": beat.data})
            case "pause":
                actions = []
                for each in beat.data:
                    action = {"kind": "approval", "thread": None, "tool": "tool", "arguments": {}, **each}
                    told = run.append("action.required", {"action": action})
                    actions.append({**action, "source_event_id": told.id})
                run.append("run.paused", {"required_actions": actions})
            case "release":
                run.release = beat.data
                run.append("release.changed", {"release": beat.data})
            case "trim":
                run.trim(beat.count)
            case "rotate":
                run.rotate(beat.count)
                for line in list(self._lines[run.id]):
                    line.close("epoch_changed" if beat.tell else None)
            case "lose":
                run.lose(beat.count)
                for line in list(self._lines[run.id]):
                    line.close(None)
        for line in list(self._lines[run.id]):
            line.bring()
        for news in self._waiting:
            news.set()

    def plan(
        self,
        *,
        legs: Iterable[Leg] = (),
        creates: Iterable[Trip] = (),
        statuses: Iterable[Trip] = (),
        snapshots: Iterable[Trip] = (),
        pages: Iterable[Trip] = (),
    ) -> None:
        """Add plans behind those that are left; arguments as the class's."""
        self._legs.extend(legs)
        for kind, trips in (("create", creates), ("status", statuses), ("snapshot", snapshots), ("events", pages)):
            self._trips[kind].extend(trips)

    def cut(self, run: ModelRun, how: How = "reset") -> int:
        """End every open connection of a run now, between two blocks; return how many there were."""
        lines = list(self._lines[run.id])
        for line in lines:
            line.cut(how)
        return len(lines)

    def _beat(self, run: ModelRun, number: int, now: float) -> None:
        """Do all beats that are due, and set an alarm for the next."""
        beats = self._plots[run.id]
        while number < len(beats):
            beat = beats[number]
            if beat.after > 0 and now + beat.after > self._clock.now():
                self._clock.call_at(now + beat.after, partial(self._ring, run, number, now + beat.after))
                return
            self.perform(run, beat)
            number += 1

    def _ring(self, run: ModelRun, number: int, due: float) -> None:
        if run.status == "cancelled":
            return
        self.perform(run, self._plots[run.id][number])
        self._beat(run, number + 1, due)

    # answers ----------------------------------------------------------------------------------------------------------

    def answer_stream(self, sent: Sent) -> StreamAnswer:
        """Answer an attach by its plan, else by the protocol."""
        if self.attached is not None:
            self.attached(sent)
        leg = self._legs.popleft() if self._legs else Leg()
        socket = "sec-websocket-protocol" in sent.headers
        answered = as_socket if socket else as_stream
        if leg.lost or leg.delay is None:
            return StreamAnswer(delay=leg.delay, lost="connection reset by peer" if leg.lost else None)
        if leg.refuse is not None:
            if leg.refuse in (200, 204):
                return StreamAnswer(status=leg.refuse, delay=leg.delay)
            return answered(refused(leg.refuse, leg.code, retry_after=leg.retry_after))
        run = self._run_of(sent)
        if run is None:
            return answered(refused(404, "run_not_found"))
        place = run.place(sent.after)
        if isinstance(place, CallAnswer):
            return answered(place)
        if run.settled and place == run.last and not leg.again and not socket:
            return StreamAnswer(status=204, headers={}, delay=leg.delay)
        form: Form = SocketForm() if socket else StreamForm()
        line = Line(self._clock, run, place, leg, self._heartbeat_ms, form, self._line_over)
        if not line.over:
            self._lines[run.id].append(line)
        if socket and leg.content_type == "text/event-stream":
            return StreamAnswer(status=101, headers={}, body=line.body, delay=leg.delay)
        return StreamAnswer(headers={"content-type": leg.content_type}, body=line.body, delay=leg.delay)

    def answer_call(self, sent: Sent) -> CallAnswer | Awaitable[CallAnswer]:
        """Answer a finite call by its plan, else by the protocol; a long poll when it is time."""
        match = _RUN.match(sent.path.partition("?")[0])
        if sent.method == "POST" and sent.path == "/v1/runs":
            kind = "create"
        elif match is None or match[2] is None:
            kind = "status"
        else:
            kind = match[2].removeprefix("/")
        if kind == "events" and "wait_ms=0" in sent.path and self.attached is not None:
            self.attached(sent)  # the pages of one connection are one attach
        trips = self._trips.get(kind)
        trip = trips.popleft() if trips else Trip()
        if trip.lost == "before":
            return CallAnswer(lost="connection refused", definite=True)
        if trip.refuse is not None:
            return refused(trip.refuse, trip.code, retry_after=trip.retry_after)
        if kind == "events":
            return self._page(sent, trip)
        answer = self._answer(sent, kind)
        return CallAnswer(
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
            delay=trip.delay,
            lost="connection reset by peer" if trip.lost else None,
        )

    def _answer(self, sent: Sent, kind: str) -> CallAnswer:
        if kind == "create":
            return self._create(sent)
        parts = urlsplit(sent.path)
        if parts.path == "/.well-known/reattach":
            return told({"protocol": 1, "limits": {"key_retention_ms": self.key_retention_ms}})
        if match := _OPERATION.match(parts.path):
            return self.acting.operation(unquote(match[1]))
        if match := _SESSION.match(parts.path):
            return self.acting.session(unquote(match[1]), next(iter(parse_qs(parts.query).get("after", [])), None))
        if parts.path == "/v1/runs":
            keys = parse_qs(parts.query).get("idempotency_key", [])
            return told({"runs": [run.told() for run in self.runs.values() if [run.key] == keys]})
        run = self._run_of(sent)
        if run is None:
            return refused(404, "run_not_found")
        if kind == "cancel":
            return self._cancel(run, "requested")
        return told(run.snapshot() if kind == "snapshot" else run.told())

    async def _page(self, sent: Sent, trip: Trip) -> CallAnswer:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(sent.path).query).items()}
        run, after = self._run_of(sent), asked.get("after")
        if run is None:
            return refused(404, "run_not_found")
        place = run.place(after)
        limit = self._clock.now() + int(asked.get("wait_ms", "0")) / 1000.0
        while isinstance(place, int) and place == run.last and not run.settled and self._clock.now() < limit:
            news = anyio.Event()
            self._waiting.add(news)
            alarm = self._clock.call_at(limit, news.set)
            try:
                await news.wait()
            finally:
                alarm.cancel()
                self._waiting.discard(news)
            place = run.place(asked.get("after"))
        if isinstance(place, CallAnswer):
            return place
        events = run.after(place)[: min(self._page_events, int(asked.get("limit", "100")))]
        before = run.at(place)
        rest = {
            "next": f"{run.epoch}.{place + len(events)}",
            "cursor_id": None if not place else before.id if before else run.forgotten_id,
            "epoch": run.epoch,
            "status": run.status,
            "first_sequence": run.first,
            "last_sequence": run.last,
        }
        text = ",".join(event.text for event in events)
        body = f'{{"events":[{text}],{frames.compact(rest)[1:]}'.encode()
        return CallAnswer(body=body, delay=trip.delay, lost="connection reset by peer" if trip.lost else None)

    def _create(self, sent: Sent) -> CallAnswer:
        key, request = sent.headers.get("idempotency-key", ""), sent.body or b""
        if not key:
            return refused(400, "idempotency_key_missing")
        known = self.acting.known(key, request)
        if known is not None:
            return known
        body = body_of(request)
        if "continues" in body:
            paused = self.acting.answers(key, body)
            if isinstance(paused, CallAnswer):
                return paused
        active = self.acting.active(body.get("session_id"))
        if active is not None:
            if body.get("on_active") != "cancel":
                return refused(409, "session_busy", run_id=active.id)
            self._cancel(active, "superseded")
        return told(self.create(key, request).told(), 201)

    def _cancel(self, run: ModelRun, reason: str) -> CallAnswer:
        if run.settled:
            settle_pauses({run.id: run}, run.session_id, "cancelled")
            return told(run.told())
        self.perform(run, Beat(type="run.cancelled", data={"reason": reason, "operations": self._inventory}))
        return told(run.told(), 202)

    def _run_of(self, sent: Sent) -> ModelRun | None:
        if "sec-websocket-protocol" in sent.headers:
            return self.runs.get(json.loads(sent.body or b"{}").get("run_id"))
        match = _RUN.match(sent.path.partition("?")[0])
        return self.runs.get(match[1]) if match else None

    def _line_over(self, line: Line, how: str) -> None:
        if self.ended is not None and not line.body.closed.is_set():
            self.ended(how)
        for lines in self._lines.values():
            if line in lines:
                lines.remove(line)
