"""A server, a network and a store in memory for the small client: virtual time, faults by plan, and a true history of all of it.

    world = SmallWorld(legs=[Leg(cut=3, how="rst")])
    history = world.play("by-text")

Written from the protocol. Blocking like the client; what waits moves the clock.
"""

import json
import random
from dataclasses import dataclass, field

from reattach_chaos.history import (
    Case,
    Close,
    Connect,
    Counts,
    Created,
    CutFired,
    CutPlanned,
    Died,
    Exited,
    Head,
    Heartbeat,
    Lease,
    Logged,
    Received,
    Recorder,
    Request,
    Resume,
    ResumeOk,
    ResumeRejected,
    Server,
    Status,
    Store,
    content_sha256,
    record_of,
)
from reattach_chaos.mutants import client_of
from reattach_chaos.mutants.world import Answer, Fenced, Lost, Silent, StoreBroken

RUN = "run_1"
HEARTBEAT = 1.0


@dataclass(frozen=True)
class Leg:
    """What becomes of one request for a stream.

    `cut`: after this event's blank line (0: after the head); `half`: after its id line; `how`: fin, rst or stall. `refuse`: a
    status and a code; `wish`: seconds of Retry-After. `skip`: this event is left out. `down`: no connection at all.
    `pause`: seconds before the first event, with heartbeats. `trim`: before the answer, events up to this one expire.
    """

    cut: int | None = None
    half: int | None = None
    how: str = "fin"
    refuse: tuple[int, str] | None = None
    wish: float | None = None
    skip: int | None = None
    down: bool = False
    pause: float = 0.0
    trim: int = 0


@dataclass
class SmallWorld:
    """One case: a run, its faults, one client."""

    legs: list = field(default_factory=list)
    texts: tuple = ("a", "b", "c", "d", "e", "f")
    lost_creates: int = 0
    kills: tuple = ()  # rendered lines, counted over all lives, after which the process is killed
    takeover_after: int | None = (
        None  # a rendered line, after which another process takes the store over and plays to the end
    )
    store_fails_at: tuple = ()  # saves, counted over all lives, that fail
    start: bool = False
    limit: float = 600.0  # virtual seconds for the whole case
    seed: int = 7

    def __post_init__(self):
        self.time = 0.0
        self.chance = random.Random(self.seed)
        self.recorder = Recorder(clock=lambda: self.time)
        self.legs = list(self.legs)
        types = ["run.created", *["message.delta"] * len(self.texts), "run.completed"]
        datas = [{}, *[{"text": text} for text in self.texts], {"result": "ok"}]
        self.log = [
            {"id": f"evt_{number}", "cursor": f"e1.{number}", "sequence": number, "type": type, "data": data}
            for number, (type, data) in enumerate(zip(types, datas, strict=True), 1)
        ]
        self.first = 1
        self.runs = {}
        self.state = {}
        self.token = 0
        self.saves = self.rendered = self.conns = 0
        self.life = 1
        self.creates = 0
        self.planned = []

    # the play ---------------------------------------------------------------------------------------------------------

    def play(self, mutant):
        """Let a client play; return the history."""
        self.mutant = mutant
        floor = 20.0
        self.recorder.record(
            Case(id=mutant, runs=1, marks=True, heartbeat_ms=HEARTBEAT * 1000, stall_heartbeats=4, converge_ms=60_000,
                 give_up_ms=60_000, floor_ms=floor, base_ms=100, ceiling_ms=5000, seed=self.seed)
        )  # fmt: skip
        for number, leg in enumerate(self.legs, 1):
            if fault := self.fault(leg):
                self.planned.append(number)
                self.recorder.record(CutPlanned(cut=number, fault=fault[0], position=fault[1]))
        if not self.start:
            self.runs["other"] = RUN
        while True:
            life = self.life
            try:
                code = self.client().run()
            except Killed:
                self.recorder.record(Died(life=life, run=RUN))
                self.life += 1
                continue
            except OutOfTime:
                code = None
            self.recorder.record(Exited(code=code, life=life, run=RUN))
            break
        self.tell_the_truth()
        return self.recorder.history()

    def client(self):
        """Start a process."""
        life = View(self, self.life)
        return client_of(self.mutant)(life, None if self.start else RUN, key="k1", heartbeat=HEARTBEAT)

    def tell_the_truth(self):
        """What the control reader reads at the end."""
        settled = {"run.completed": "completed"}
        for by in ("control", "replay"):
            for event in self.log[0 if by == "control" else self.first - 1 :]:
                self.recorder.record(
                    Logged(who="control", run=RUN, id=event["id"], cursor=event["cursor"], sequence=event["sequence"],
                           epoch="e1", type=event["type"], sha256=content_sha256(event["data"]),
                           settles=settled.get(event["type"]), by=by)
                )  # fmt: skip
        for key, run in self.runs.items():
            self.recorder.record(Created(who="control", run=run, key=key))
        self.recorder.record(Status(who="control", run=RUN, status="completed", head=len(self.log), epoch="e1"))
        self.recorder.record(Counts(who="control", of="case", events=len(self.log)))
        self.recorder.record(Counts(who="control", of="twin", events=len(self.log)))

    @staticmethod
    def fault(leg):
        """The fault of a leg and its place, None where it does nothing."""
        if leg.cut is not None:
            return leg.how, f"after-event-{leg.cut}"
        if leg.half is not None:
            return leg.how, f"after-id-line-of-event-{leg.half}"
        if leg.down:
            return "refuse", "connecting"
        if leg.refuse and leg.refuse[0] != 410:
            return "busy", "after-request"
        return None

    def fired(self, leg, conn):
        """Record that a leg's fault came."""
        fault, place = self.fault(leg)
        self.recorder.record(CutFired(who="gate", run=RUN, conn=conn, cut=conn, fault=fault, position=place))


class Killed(BaseException):
    """SIGKILL."""


class OutOfTime(BaseException):
    """The case's time is over."""


class View:
    """The world as one process has it."""

    def __init__(self, world, life):
        self.world = world
        self.life = life

    def record(self, kind, **facts):
        return self.world.recorder.record(kind(life=self.life, run=RUN, **facts))

    def now(self):
        return self.world.time + 1000.0  # a process's clock begins anywhere

    def sleep(self, seconds):
        self.world.time += seconds
        if self.world.time > self.world.limit:
            raise OutOfTime

    def draw(self, low, high):
        return self.world.chance.uniform(low, high)

    def say(self, line):
        world = self.world
        world.recorder.record(record_of(line, life=self.life, run=RUN))
        if line["kind"] == "rendered":
            world.rendered += 1
            if world.rendered in world.kills:
                raise Killed
            if world.rendered == world.takeover_after:
                world.life += 1
                world.client().run()

    def load(self):
        return json.loads(json.dumps(self.world.state))

    def lease(self):
        self.world.token += 1
        self.record(Lease, token=self.world.token)
        return self.world.token

    def save(self, state, token):
        world = self.world
        if token is not None and token != world.token:
            raise Fenced
        world.saves += 1
        if world.saves in world.store_fails_at:
            self.record(Store, did="failed")
            raise StoreBroken
        world.state = json.loads(json.dumps(state))

    def create(self, key):
        world = self.world
        world.creates += 1
        self.record(Request, route="create", key=key, sha256="body", nth=world.creates)
        world.runs.setdefault(key, RUN if not world.runs else f"run_{len(world.runs) + 1}")
        if world.creates <= world.lost_creates:
            raise Lost("connection reset")
        return Answer(201, {"id": RUN})

    def status(self, run):
        return Answer(200, {"status": "completed"})

    def attach(self, run, after):
        world = self.world
        world.conns += 1
        if world.conns > 3000:
            raise OutOfTime
        leg = world.legs[world.conns - 1] if world.conns <= len(world.legs) else Leg()
        if leg.down:
            self.record(Connect, conn=world.conns, ok=False)
            world.fired(leg, world.conns)
            raise Lost("connection refused")
        if leg.trim:
            world.first = leg.trim + 1
            self.record(Server, did="trimmed", until=leg.trim)
        self.record(Connect, conn=world.conns)
        self.record(Request, conn=world.conns, route="stream", nth=world.conns)
        self.record(Resume, conn=world.conns, after=after)
        sequence = world.first - 1 if after == "earliest" else int(after.partition(".")[2]) if after else 0
        refuse = leg.refuse
        if refuse is None and sequence < world.first - 1:
            refuse = (410, "cursor_expired")
        status = refuse[0] if refuse else 200
        wish = None if leg.wish is None else leg.wish * 1000
        self.record(Head, conn=world.conns, route="stream", status=status, retry_after_ms=wish)
        if refuse:
            self.record(ResumeRejected, conn=world.conns, status=refuse[0], code=refuse[1])
            if world.fault(leg):
                world.fired(leg, world.conns)
            return SmallStream(self, world.conns, leg, [], refuse)
        self.record(ResumeOk, conn=world.conns, cursor=after, epoch="e1", head=len(world.log))
        if leg.skip:
            self.record(Server, did="skipped", until=leg.skip)
        events = [event for event in world.log[sequence:] if event["sequence"] != leg.skip]
        return SmallStream(self, world.conns, leg, events, None)


class SmallStream:
    """One answer. Items: ("event", e), ("half", e), ("beat", None), ("end", how)."""

    def __init__(self, view, conn, leg, events, refuse):
        self.view, self.conn, self.leg = view, conn, leg
        self.status, self.code = refuse or (200, "")
        self.retry_after = leg.wish
        self.closed = False
        start = view.world.time
        self.items = [(start + (number + 1) * HEARTBEAT, "beat", None) for number in range(int(leg.pause / HEARTBEAT))]
        last = start + leg.pause
        if leg.cut == 0:
            self.items.append((last, "end", leg.how))
            return
        for event in events:
            if event["sequence"] == leg.half:
                self.items += [(last, "half", event), (last, "end", leg.how)]
                return
            self.items.append((last, "event", event))
            if leg.cut is not None and event["sequence"] >= leg.cut:
                self.items.append((last, "end", leg.how))
                return
        self.items.append((last, "end", "over"))

    def read(self, timeout):
        world = self.view.world
        if self.items and self.items[0][1:] == ("end", "stall"):
            self.items.pop(0)
            world.fired(self.leg, self.conn)
        at = self.items[0][0] if self.items else world.time + timeout + 1
        if at - world.time > timeout:
            self.view.sleep(timeout)
            self.hang_up("client")
            raise Silent
        self.view.sleep(max(0.0, at - world.time))
        _, kind, what = self.items.pop(0)
        match kind:
            case "beat":
                self.view.record(Heartbeat, conn=self.conn)
                return b":\n\n"
            case "half":
                self.view.record(Received, conn=self.conn, id=what["cursor"], whole=False)
                return f"id: {what['cursor']}\n".encode()
            case "event":
                self.view.record(Received, conn=self.conn, id=what["cursor"], sequence=what["sequence"])
                data = json.dumps({name: what[name] for name in ("id", "data")})
                return f"id: {what['cursor']}\nevent: {what['type']}\ndata: {data}\n\n".encode()
            case _ if what == "over":
                self.hang_up("server")
                return b""
            case _:
                world.fired(self.leg, self.conn)
                self.hang_up("gate")
                if what == "rst":
                    raise Lost("connection reset")
                return b""

    def hang_up(self, by):
        if not self.closed:
            self.closed = True
            self.view.record(Close, conn=self.conn, by=by)

    def close(self):
        if self.items and self.items[0][1] == "end" and self.items[0][2] in ("fin", "rst"):
            self.view.world.fired(
                self.leg, self.conn
            )  # the client has all that was to come: the cut comes all the same
        self.hang_up("client")
