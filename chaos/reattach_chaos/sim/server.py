"""The simulated server: the native protocol in memory.

Written from the protocol; it shares no decision with the client. It implements the answers of `reattach.testing.Wire`: what becomes
of each request, by the schedule, else by the protocol. Its runs are `site.py`, the way to it `network.py`, its streams `stream.py`.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import anyio

from reattach.testing import CallAnswer, frames, refused, told
from reattach.testing.acting import Acting, body_of, settle_pauses
from reattach_chaos.history import Close, Head, Received, Resume, ResumeOk, ResumeRejected, Snapshot, Status
from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.place import Place
from reattach_chaos.sim.clock import SimClock
from reattach_chaos.sim.network import Network, loss
from reattach_chaos.sim.plans import Plans
from reattach_chaos.sim.runs import NUMBERS, SimRun, Step
from reattach_chaos.sim.scribe import Scribe
from reattach_chaos.sim.site import Site
from reattach_chaos.sim.stream import SimStream
from reattach_chaos.sim.wire import Opening, Sent, SimBody, SimWire, finite

_RUN = re.compile(r"/v1/runs/([^/?]+)(/events|/snapshot|/cancel)?\Z")
_SESSION = re.compile(r"/v1/sessions/([^/]+)/runs\Z")
_NO_ANSWER = (Place.AFTER_REQUEST, Place.IN_HEAD, Place.AFTER_HEAD)


class SimServer:
    """A server behind a network.

    Args:
        clock: The clock.
        plans: The planned faults.
        scribe: Who writes down.
        chance: Where the times of events come from.
        crlf: Streams end their lines with CR LF.
    """

    def __init__(self, clock: SimClock, plans: Plans, scribe: Scribe, chance: random.Random, *, crlf: bool) -> None:
        self.wire = SimWire(clock, self)
        self.site = Site(clock, plans, scribe, chance)
        self._runs = self.site.runs
        self._network = Network(clock, plans, scribe, self.site)
        self._clock = clock
        self._plans = plans
        self._scribe = scribe
        self._crlf = crlf
        self._acting = Acting(self._runs, "honoured")  # type: ignore[arg-type]  # a dict of a subclass, only read

    # requests ---------------------------------------------------------------------------------------------------------

    def answer_stream(self, sent: Sent) -> Opening:
        """Answer an attach."""
        match = _RUN.match(sent.path.partition("?")[0])
        run_id = match[1] if match else ""
        run = self._runs.get(run_id)
        conn, due, pace, early = self._network.arrives(sent, "stream", run, run_id)
        if early is not None:
            return finite(early, self._network.hears(conn, run_id))
        self._scribe.write(Resume, run=run_id, conn=conn, after=sent.after)
        wrong = self._network.instead(due, conn, run_id)
        if wrong is not None:
            return self._rejected(wrong, conn, run_id)
        if run is None:
            return self._rejected(refused(404, "run_not_found"), conn, run_id)
        place = run.place(sent.after)
        if isinstance(place, CallAnswer):
            return self._rejected(place, conn, run_id)
        if run.settled and place == run.last:
            self._scribe.write(Head, run=run_id, conn=conn, route="stream", status=204)
            self._scribe.write(Close, run=run_id, conn=conn, by="server")
            return Opening(SimBody(), 204, {}, pace.delay)
        self._scribe.write(Head, run=run_id, conn=conn, route="stream", status=200, media="text/event-stream")
        self._scribe.write(ResumeOk, run=run_id, conn=conn, cursor=sent.after, epoch=run.epoch, head=run.last)
        cut = next((plan for plan in due if plan.place is Place.AFTER_HEAD), None)
        if cut is not None and not self._network.after_head(cut, run):
            self._plans.fire(cut, run=run_id, conn=conn)
            return Opening(self._network.cut_at_once(cut, conn, run_id), delay=pace.delay)
        stream = SimStream(
            self._clock, run, place, conn, due, self._plans, self._scribe, self.site, pace, crlf=self._crlf
        )  # fmt: skip
        self.site.streams.append(stream)
        stream.begin()
        return Opening(stream.body, delay=pace.delay)

    def answer_call(self, sent: Sent) -> Any:
        """Answer a finite call; a long poll when it is time."""
        path = urlsplit(sent.path).path
        match = _RUN.match(path)
        run = self._runs.get(match[1]) if match else None
        route, run = self._route(sent, path, match, run)
        conn, due, pace, early = self._network.arrives(sent, route, run, None if run is None else run.id)
        run_id = None if run is None else run.id
        if early is not None:
            return self._network.gone(early, conn, run_id)
        instead = self._network.instead(due, conn, run_id, route)
        if instead is not None:
            self._network.close(conn, run_id, "server")
            return instead
        if route == "other" and match is not None and match[2] == "/events":
            return self._page(sent, run, conn)
        answer = self._answer(sent, route, path, match, run)
        lost = next((plan for plan in due if plan.place in _NO_ANSWER), None)
        if lost is not None:
            self._plans.fire(lost, run=run_id, conn=conn)
            if lost.planned.fault is Fault.SERVER_RESTART:
                self.site.restart(lost)
            return self._network.gone(loss(lost.planned.fault), conn, run_id)
        self._scribe.write(
            Head,
            run=run_id,
            conn=conn,
            route=route,
            status=answer.status,
            media=answer.headers.get("content-type", ""),
        )
        self._tell(route, match, run, answer)
        self._network.close(conn, run_id, "server")
        return CallAnswer(status=answer.status, headers=answer.headers, body=answer.body, delay=pace.delay)

    def _rejected(self, answer: CallAnswer, conn: int, run_id: str) -> Opening:
        """Return a refusal of an attach; its head is written unless a fault's was."""
        if answer.status >= 400:
            code = json.loads(answer.body).get("code", "") if answer.body else ""
            self._scribe.write(ResumeRejected, run=run_id, conn=conn, status=answer.status, code=code)
        self._network.close(conn, run_id, "server")
        return finite(answer)

    # inside: the protocol ---------------------------------------------------------------------------------------------

    def _route(
        self, sent: Sent, path: str, match: re.Match[str] | None, run: SimRun | None
    ) -> tuple[str, SimRun | None]:
        """Return a finite call's route, and the run that it is about."""
        if sent.method == "POST" and path == "/v1/runs":
            paused = self._runs.get(str(body_of(sent.body or b"").get("continues")))
            return ("answer", paused) if paused is not None else ("create", None)
        if _SESSION.match(path):
            return "list", None
        if match is None:
            return "other", None
        return {None: "status", "/snapshot": "snapshot", "/cancel": "cancel"}.get(match[2], "other"), run

    def _answer(self, sent: Sent, route: str, path: str, match: re.Match[str] | None, run: SimRun | None) -> CallAnswer:
        if route in ("create", "answer"):
            return self._made(sent, route)
        if route == "list" and (session := _SESSION.match(path)):
            after = next(iter(parse_qs(urlsplit(sent.path).query).get("after", [])), None)
            return self._acting.session(unquote(session[1]), after)
        if path == "/.well-known/reattach":
            return told({"protocol": 1, "limits": {"key_retention_ms": None}})
        if run is None:
            return refused(404, "run_not_found")
        if route == "cancel":
            if run.settled:
                settle_pauses({run.id: run}, run.session_id, "cancelled")
                return told(run.told())
            self.site.append(run, Step(0.0, "run.cancelled", {"reason": "requested", "operations": {}}))
            return told(run.told(), 202)
        return told(run.snapshot() if route == "snapshot" else run.told())

    def _made(self, sent: Sent, route: str) -> CallAnswer:
        key, request = sent.headers.get("idempotency-key", ""), sent.body or b""
        if not key:
            return refused(400, "idempotency_key_missing")
        known = self._acting.known(key, request)
        if known is not None:
            return known
        body = body_of(request)
        if route == "answer":
            paused = self._acting.answers(key, body)
            if isinstance(paused, CallAnswer):
                return paused
        active = self._acting.active(body.get("session_id"))
        if active is not None:
            return refused(409, "session_busy", run_id=active.id)
        number = 3 if route == "answer" else NUMBERS.get(key, 1)
        return told(self.site.create(number, key, request).told(), 201)

    async def _page(self, sent: Sent, run: SimRun | None, conn: int) -> CallAnswer:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(sent.path).query).items()}
        if run is None:
            return refused(404, "run_not_found")
        place = run.place(asked.get("after"))
        limit = self._clock.now() + int(asked.get("wait_ms", "0")) / 1000.0
        while isinstance(place, int) and place == run.last and not run.settled and self._clock.now() < limit:
            news = anyio.Event()
            self.site.news.add(news)
            alarm = self._clock.call_at(limit, news.set)
            try:
                await news.wait()
            finally:
                alarm.cancel()
                self.site.news.discard(news)
            place = run.place(asked.get("after"))
        if isinstance(place, CallAnswer):
            self._scribe.write(Resume, run=run.id, conn=conn, after=asked.get("after"))
            self._rejected(place, conn, run.id)
            return place
        events = run.after(place)[: int(asked.get("limit", "100"))]
        before = run.at(place)
        rest = {
            "next": f"{run.epoch}.{place + len(events)}",
            "cursor_id": None if not place else before.id if before else run.forgotten_id,
            "epoch": run.epoch,
            "status": run.status,
            "first_sequence": run.first,
            "last_sequence": run.last,
        }
        for event in events:
            self._scribe.write(
                Received, run=run.id, conn=conn, id=f"{event.epoch}.{event.sequence}", sequence=event.sequence
            )
        self._scribe.write(Status, run=run.id, status=run.status, head=run.last, epoch=run.epoch)
        self._network.close(conn, run.id, "server")
        text = ",".join(event.text for event in events)
        return CallAnswer(body=f'{{"events":[{text}],{frames.compact(rest)[1:]}'.encode())

    def _tell(self, route: str, match: re.Match[str] | None, run: SimRun | None, answer: CallAnswer) -> None:
        """Write down what the client read of a run's state."""
        if answer.status >= 300 or route == "other":
            return
        body = json.loads(answer.body)
        for each in body.get("runs", [body]):
            run_id = each.get("id") or (run.id if run is not None else None)
            if run_id in self._runs:
                self._runs[run_id].end_told |= self._runs[run_id].settled
            if route == "snapshot":
                self._scribe.write(Snapshot, run=run_id, boundary=each["cursor"], status=each["status"])
            else:
                self._scribe.write(
                    Status, run=run_id, status=each["status"], head=each["last_sequence"], epoch=each["epoch"]
                )
