"""The simulated site: the session's runs, how they grow, and what is done to them and to the server by plan.

It knows no request. Who is attached is told by what it publishes.
"""

import json
import random
from functools import partial

import anyio

from reattach.testing.acting import body_of, resolve
from reattach_chaos.history import Created, Logged, Server, Status, content_sha256
from reattach_chaos.schedules.fault import Fault
from reattach_chaos.schedules.place import Place
from reattach_chaos.schedules.settings import setting
from reattach_chaos.sim.clock import SimClock
from reattach_chaos.sim.plans import Plan, Plans
from reattach_chaos.sim.runs import STORY, SimRun, Step, script
from reattach_chaos.sim.scribe import Scribe
from reattach_chaos.sim.stream import SimStream

_SETTLES = {"run.completed": "completed", "run.failed": "failed", "run.paused": "requires_action"}


class Site:
    """A server's runs.

    Args:
        clock: The clock.
        plans: The planned faults.
        scribe: Who writes down.
        chance: Where the times of events come from.
    """

    def __init__(self, clock: SimClock, plans: Plans, scribe: Scribe, chance: random.Random) -> None:
        self.runs: dict[str, SimRun] = {}
        self.asleep = 0.0
        """Seconds that the machine has slept."""
        self.streams: list[SimStream] = []
        """The open ones."""
        self.news: set[anyio.Event] = set()
        """Set whenever a log has grown."""
        self._clock = clock
        self._plans = plans
        self._scribe = scribe
        self._scripts = {number: script(number, chance) for number in STORY}
        self._down_until = 0.0

    @property
    def down(self) -> bool:
        """Whether it is away."""
        return self._clock.now() < self._down_until

    def number(self, run_id: str | None) -> int:
        """Return a run's number in the session, 0 for none."""
        run = self.runs.get(run_id or "")
        return run.number if run is not None else 0

    def create(self, number: int, key: str, request: bytes) -> SimRun:
        """Make a run; what is due happens at once."""
        body = body_of(request)
        paused = self.runs.get(str(body.get("continues")))
        run = SimRun(number, f"run_{len(self.runs) + 1}", key, request)
        run.session_id = paused.session_id if paused is not None else str(body.get("session_id") or "ses_1")
        self.runs[run.id] = run
        self.append(run, Step(0.0, "run.created", {"session_id": run.session_id}))
        if paused is not None:
            resolve(paused, run, body)
        self._go_on(run, self._clock.now())
        return run

    def _go_on(self, run: SimRun, since: float) -> None:
        """Do all steps of a run that are due, and set an alarm for the next."""
        steps = self._scripts[run.number]
        while run.next_step < len(steps) and not run.settled:
            step = steps[run.next_step]
            due = max(since + step.after, self._down_until)
            if due > self._clock.now():
                self._clock.call_at(due, partial(self._go_on, run, due - step.after))
                return
            run.next_step += 1
            self.append(run, step)
            since = due

    def append(self, run: SimRun, step: Step) -> None:
        """Append an event and send it on; the server may be killed at each step of that."""
        event = run.last + 1
        self._server_places(run, event, Place.EXECUTED, Place.RECORDED)
        run.append(step.type, step.data)
        self._server_places(run, event, Place.APPENDED)
        if not self.down:
            self._publish(run)
            self._server_places(run, event, Place.PUBLISHED)

    def _server_places(self, run: SimRun, event: int, *places: Place) -> None:
        for place in places:
            for plan in self._plans.due(place, run.number, event):
                self._plans.fire(plan, run=run.id)
                self.restart(plan)

    def _publish(self, run: SimRun) -> None:
        for stream in [each for each in self.streams if each.run is run]:
            stream.bring()
        for news in self.news:
            news.set()

    # what is done to it -----------------------------------------------------------------------------------------------

    def strike(self, plan: Plan, run: SimRun) -> bool:
        """Do what a fault does to the server; False where it does nothing to it."""
        match plan.planned.fault:
            case Fault.SERVER_RESTART:
                self.restart(plan)
            case Fault.NEW_EPOCH if run.end_told:
                self._plans.miss(plan, "the client knows the end of this log")
                return False
            case Fault.NEW_EPOCH:
                run.rotate(setting(plan.planned, "keep"))
                self._scribe.write(Server, who="server", run=run.id, did="epoch", epoch=run.epoch)
                self._end_streams(run, "epoch_changed")
                steps = self._scripts[run.number]
                if not run.settled and run.next_step >= len(steps):
                    run.next_step = len(steps) - 1
                if not run.log:
                    self.append(run, Step(0.0, "run.created", {"session_id": run.session_id}))
                self._go_on(run, self._clock.now())
            case Fault.EXPIRE:
                before = run.first
                run.trim(max(0, len(run.log) - setting(plan.planned, "keep")))
                if run.first > before:
                    self._scribe.write(Server, who="server", run=run.id, did="expired", until=run.first - 1)
            case Fault.SUSPEND:
                seconds = setting(plan.planned, "sleep_ms") / 1000.0
                self.asleep += seconds
                self._clock.oversleep(seconds)
            case _:
                return False
        return True

    def restart(self, plan: Plan) -> None:
        """Go down, with or without a word, and come back."""
        kill = setting(plan.planned, "signal") == "kill"
        self._scribe.write(Server, who="server", did="killed" if kill else "stopped")
        self._down_until = self._clock.now() + float(setting(plan.planned, "down_ms")) / 1000
        self._end_streams(None, None if kill else "draining")
        self._clock.call_at(self._down_until, self._up)

    def _up(self) -> None:
        self._scribe.write(Server, who="server", did="started")
        for run in self.runs.values():
            self._publish(run)

    def _end_streams(self, run: SimRun | None, reason: str | None) -> None:
        for stream in list(self.streams):
            if run is None or stream.run is run:
                stream.close(reason)
        self.streams = [each for each in self.streams if not each.over]

    def tell_the_truth(self) -> None:
        """Write down what the control reader reads at the end: the runs, and every event that ever was in their logs."""
        for run in self.runs.values():
            self._scribe.write(Created, who="control", run=run.id, key=run.key)
            for event in run.ever.values():
                data = json.loads(event.text)["data"]
                self._scribe.write(
                    Logged,
                    who="control",
                    run=run.id,
                    id=event.id,
                    cursor=f"{event.epoch}.{event.sequence}",
                    sequence=event.sequence,
                    epoch=event.epoch,
                    type=event.type,
                    sha256=content_sha256(data),
                    settles=_SETTLES.get(event.type),
                )
            self._scribe.write(Status, who="control", run=run.id, status=run.status, head=run.last, epoch=run.epoch)
