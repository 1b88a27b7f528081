"""The simulated network: how a request comes, or does not, and what answers in the server's place.

Every request is a connection of its own, as the client makes them. What is lost before the server reads it is lost here; what is
lost behind that is the server's to say.
"""

from collections import Counter
from functools import partial
from typing import NamedTuple

from reattach.testing import CallAnswer, frames, refused
from reattach_chaos.history import Close, Connect, Head, Request, Resume, bytes_sha256
from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.place import Place
from reattach_chaos.schedules.settings import settings_of
from reattach_chaos.sim.clock import SimClock
from reattach_chaos.sim.plans import Plan, Plans
from reattach_chaos.sim.runs import NUMBERS, SimRun
from reattach_chaos.sim.scribe import Scribe
from reattach_chaos.sim.site import Site
from reattach_chaos.sim.stream import Pace
from reattach_chaos.sim.wire import Sent, SimBody

CONNECT_S = 3.0
"""The network's own limit: a request without any answer is given up then."""
CHANGES = frozenset({Fault.SERVER_RESTART, Fault.NEW_EPOCH, Fault.EXPIRE, Fault.SUSPEND})
"""What is done to the server, or to the machine, and not to a request."""
_BEFORE = frozenset({Place.CONNECTING, Place.IN_BACKOFF})
_SLOW = frozenset({Fault.LATENCY, Fault.TRICKLE, Fault.BANDWIDTH, Fault.SLOW_READER})
_CUTS = frozenset({Fault.FIN, Fault.RST, Fault.STALL, Fault.SERVER_RESTART})
_HTML = {"content-type": "text/html"}


class Arrival(NamedTuple):
    """A request as it comes.

    Attributes:
        conn: Its connection's number in the case.
        due: The faults that are planned for it, and have not come yet.
        pace: How slow it is.
        early: What becomes of it before the server reads it; None: it is read.
    """

    conn: int
    due: list[Plan]
    pace: Pace
    early: CallAnswer | None = None


class Network:
    """The way to a site.

    Args:
        clock: The clock.
        plans: The planned faults.
        scribe: Who writes down.
        site: What is at its end.
    """

    def __init__(self, clock: SimClock, plans: Plans, scribe: Scribe, site: Site) -> None:
        self._clock = clock
        self._plans = plans
        self._scribe = scribe
        self._site = site
        self._nth: Counter[tuple[str, int]] = Counter()
        self._conns = 0

    def arrives(self, sent: Sent, route: str, run: SimRun | None, run_id: str | None) -> Arrival:
        """Let a request come."""
        self._conns += 1
        conn = self._conns
        number = run.number if run is not None else 0
        if route == "create":
            number = NUMBERS.get(sent.headers.get("idempotency-key", ""), 0)
        self._nth[route, number] += 1
        nth = self._nth[route, number]
        due = self._plans.on_request(route, number, nth)
        pace = Pace()
        for plan in [each for each in due if each.place in _BEFORE]:
            due.remove(plan)
            if plan.planned.fault in CHANGES:
                self._change(plan, run, conn)
                continue
            self._plans.fire(plan, run=run_id, conn=conn)
            if plan.planned.fault in _SLOW:
                pace.set(plan)
            elif plan.planned.fault is not Fault.OTHER_INSTANCE:
                refused_ = plan.planned.fault is not Fault.ACCEPT_CLOSE
                self._scribe.write(Connect, run=run_id, conn=conn, ok=not refused_)
                return Arrival(conn, due, pace, loss(plan.planned.fault, definite=refused_))
        if self._site.down:
            self._scribe.write(Connect, run=run_id, conn=conn, ok=False)
            return Arrival(conn, due, pace, CallAnswer(lost="connection refused", definite=True))
        self._scribe.write(Connect, run=run_id, conn=conn)
        for plan in due:
            if plan.place in (Place.IN_REQUEST_HEAD, Place.IN_REQUEST_BODY):
                self._plans.fire(plan, run=run_id, conn=conn)
                return Arrival(conn, due, pace, loss(plan.planned.fault))
        self._scribe.write(
            Request,
            run=run_id,
            conn=conn,
            route=route,
            nth=nth,
            method=sent.method,
            target=sent.path,
            key=sent.headers.get("idempotency-key"),
            sha256=bytes_sha256(sent.body) if sent.body else None,
        )
        if route == "stream":
            for plan in due:
                if plan.place in (Place.AFTER_REQUEST, Place.IN_HEAD) and plan.planned.fault in _CUTS:
                    self._scribe.write(Resume, run=run_id, conn=conn, after=sent.after)
                    self._plans.fire(plan, run=run_id, conn=conn)
                    if plan.planned.fault is Fault.SERVER_RESTART:
                        self._site.restart(plan)
                    return Arrival(conn, due, pace, loss(plan.planned.fault))
        return Arrival(conn, due, pace)

    def _change(self, plan: Plan, run: SimRun | None, conn: int) -> None:
        """Do to the server, or to the machine, what comes at a request."""
        if plan.planned.fault in (Fault.NEW_EPOCH, Fault.EXPIRE) and run is None:
            self._plans.miss(plan, "there is no log yet")
            return
        if not plan.spent:
            plan.spent = True
            self._site.strike(plan, run)  # type: ignore[arg-type]  # a restart and a sleep are of no run
            self._plans.fire(plan, run=None if run is None else run.id, conn=conn)

    def instead(self, due: list[Plan], conn: int, run_id: str | None, route: str = "stream") -> CallAnswer | None:
        """Return what a fault answers instead of the server."""
        for plan in due:
            match plan.planned.fault:
                case Fault.BUSY:
                    settings = settings_of(plan.planned)
                    wish = settings.get("retry_after_ms")
                    # Retry-After is in whole seconds; a wish of less is one of a second.
                    seconds = None if wish is None else float(max(1, round(wish / 1000)))
                    answer = refused(settings["status"], "overloaded", retry_after=seconds)
                case Fault.UNAUTHORIZED:
                    answer = refused(401, "unauthenticated")
                    seconds = None
                case Fault.WRONG_TYPE:
                    answer, seconds = CallAnswer(headers=_HTML, body=b"<html>hello</html>"), None
                case Fault.EMPTY:
                    answer, seconds = CallAnswer(headers=frames.STREAM_HEADERS), None
                case _:
                    continue
            self._plans.fire(plan, run=run_id, conn=conn)
            self._scribe.write(
                Head,
                run=run_id,
                conn=conn,
                route=route,
                status=answer.status,
                media=answer.headers.get("content-type", ""),
                retry_after_ms=None if seconds is None else seconds * 1000,
            )
            return answer
        return None

    def after_head(self, plan: Plan, run: SimRun) -> bool:
        """Whether what comes after the head ends nothing here: it was done to the server."""
        if plan.planned.fault in CHANGES:
            self._site.strike(plan, run)
            self._plans.fire(plan, run=run.id)
            return True
        return False

    def cut_at_once(self, plan: Plan, conn: int, run_id: str) -> SimBody:
        """Return the body of an answer that ends behind its head."""
        match plan.planned.fault:
            case Fault.STALL | Fault.HALF_OPEN:
                return self.hears(conn, run_id)
            case Fault.EARLY_END:
                self.close(conn, run_id, "gate")
                return SimBody().fin()
            case _:
                self.close(conn, run_id, "gate")
                return SimBody().reset()

    def hears(self, conn: int, run_id: str | None) -> SimBody:
        """Return a body on which nothing comes; its close by the client is written down."""
        body = SimBody()
        body.hung_up = partial(self.close, conn, run_id, "client")
        return body

    def gone(self, answer: CallAnswer, conn: int, run_id: str | None) -> CallAnswer:
        """Write down how a finite call without an answer ends."""
        if answer.delay is None:
            self._clock.call_at(self._clock.now() + CONNECT_S, partial(self.close, conn, run_id, "client"))
        else:
            self.close(conn, run_id, "gate")
        return answer

    def close(self, conn: int, run_id: str | None, by: str) -> None:
        """Write down that a connection ended."""
        self._scribe.write(Close, run=run_id, conn=conn, by=by)


def loss(fault: Fault, *, definite: bool = False) -> CallAnswer:
    """Return what the client sees of a request that gets no answer."""
    if fault is Fault.STALL:
        return CallAnswer(delay=None, definite=definite)
    words = "connection refused" if definite else "connection reset by peer"
    return CallAnswer(lost=words, definite=definite)
