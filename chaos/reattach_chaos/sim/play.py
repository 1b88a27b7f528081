"""Playing one schedule in memory: the application, its processes, its server, the network and the clock in one event loop.

The schedule is the run: all chance comes from its seed, all time from a virtual clock, and nothing goes to a thread. The same
schedule gives the same history, byte for byte. The client is ours, driven through its public door; what replaces time, network
and journal is `reattach.testing`'s.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from anyio._backends import _asyncio

import reattach
from reattach.testing import Disk, LateWriter, Seams
from reattach_chaos.history import (
    Acked,
    Born,
    Case,
    Delivered,
    Exited,
    Finished,
    History,
    Said,
    Surfaced,
    content_sha256,
)
from reattach_chaos.schedules import Schedule
from reattach_chaos.schedules.place import Place
from reattach_chaos.sim.clock import SimClock
from reattach_chaos.sim.disk import Door
from reattach_chaos.sim.journal import Writer
from reattach_chaos.sim.loop import SimLoop
from reattach_chaos.sim.plans import Plans
from reattach_chaos.sim.runs import NUMBERS, cast
from reattach_chaos.sim.scribe import Scribe
from reattach_chaos.sim.server import SimServer
from reattach_chaos.sim.stream import HEARTBEAT_MS
from reattach_chaos.sim.wire import URL

POLICY = reattach.Policy(
    give_up_after=120.0,
    retry_floor=0.1,
    retry_base=0.25,
    retry_ceiling=4.0,
    connect_timeout=3.0,
    idle_timeout=6.0,
    poll_interval=10.0,
)
"""Times are short, so that a schedule needs few of the once-a-second chores of a client; their proportions are the usual ones."""
MOST_CONNECTS = 2 * int(1.0 / POLICY.retry_floor)
"""In a second. A refused connection does not tell what it was for: beside the stream, which is tried once a floor at most, the
status is asked after each loss of it, and a read of it is repeated as seldom."""
LONGEST_S = 900.0
"""Virtual seconds after which a client is taken for stuck and stopped."""
ENTRIES = 6
"""So often an application tries again after an error."""
LIVES = 12
_GAPS = ("raise", "snapshot", "continue")


class Dies(Exception):
    """The process was killed while the application's own code ran."""


class GivesUp(Exception):
    """The application was told that there is no way on."""


def play_simulated(schedule: Schedule, *, step: Any = None) -> History:
    """Play a schedule in memory and return its history.

    Args:
        schedule: Of the scenario "session"; `client["on_gap"]` says what the client does at a gap, without it the seed draws it.
        step: Instead of the client's core: a mutant of it.

    Raises:
        ValueError: The schedule is of another scenario.
    """
    with quietly():
        return play(schedule, step=step)


def play(schedule: Schedule, *, step: Any = None) -> History:
    """Play a schedule, inside of `quietly`."""
    if schedule.scenario != "session":
        raise ValueError(f"scenario {schedule.scenario!r}: the simulation plays 'session'")
    stage = _Stage(schedule, step)
    stage.loop.run(stage.play())
    return stage.scribe.history()


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Let nothing go to a thread: a store in memory needs none to wait in, and threads would make the order a matter of chance."""

    async def here(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return function(*args)

    before = anyio.to_thread.run_sync, anyio.Event, anyio.CancelScope
    anyio.to_thread.run_sync = here  # type: ignore[assignment]  # for the time of the play
    # What anyio makes of these two on asyncio, without asking each time on what it runs.
    anyio.Event, anyio.CancelScope = _asyncio.Event, _asyncio.CancelScope  # type: ignore[misc]
    try:
        yield
    finally:
        anyio.to_thread.run_sync, anyio.Event, anyio.CancelScope = before  # type: ignore[misc]


class _Stage:
    """One schedule while it is played."""

    def __init__(self, schedule: Schedule, step: Any) -> None:
        chance = random.Random(schedule.seed)
        self.cast = cast(schedule, chance)
        self.loop = SimLoop()
        self.clock = SimClock(self.loop, schedule.seed)
        self.scribe = Scribe(self.clock.now)
        self.scribe.write(
            Case,
            id=schedule.id,
            seed=schedule.seed,
            mode="start",
            runs=len(self.cast),
            marks=True,
            heartbeat_ms=HEARTBEAT_MS,
            stall_heartbeats=6.0,
            converge_ms=LONGEST_S * 1000 / 2,
            give_up_ms=(POLICY.give_up_after or 0.0) * 1000 / 2,
            floor_ms=POLICY.retry_floor * 1000,
            base_ms=POLICY.retry_base * 1000,
            ceiling_ms=POLICY.retry_ceiling * 1000,
            storm_connects=MOST_CONNECTS,
        )
        self.plans = Plans(schedule, self.scribe)
        crlf = schedule.server.get("line_end") == "crlf" or self.plans.any_at(Place.IN_LINE_END)
        self.server = SimServer(self.clock, self.plans, self.scribe, chance, crlf=crlf)
        self.disk = Disk(self.clock.time)
        self.on_gap: Any = schedule.client.get("on_gap") or chance.choice(_GAPS)
        self.step = step
        self.shown: dict[tuple[str, int], str | None] = {}
        self.ids: dict[int, str] = {}
        """The application's own notes: the id of each run of the session that was followed to its end."""
        self.tokens = 0
        self._stop: Callable[[], None] = lambda: None

    async def play(self) -> None:
        """Live one process after the other, until the session is over."""
        code: int | None = None
        with anyio.CancelScope() as whole:
            self._guard(whole, 0.0)
            self._stop = whole.cancel
            for self.scribe.life in range(1, LIVES + 1):
                self.scribe.write(Born)
                code = await self._life()
                if code is not None:
                    break
        self.scribe.write(Exited, code=code)
        self.server.site.tell_the_truth()

    def _guard(self, whole: anyio.CancelScope, asleep: float) -> None:
        """Stop the client if it is stuck; sleep does not count."""

        def late() -> None:
            if self.server.site.asleep > asleep:
                self._guard(whole, self.server.site.asleep)
            else:
                whole.cancel()

        self.clock.call_at(self.clock.now() + LONGEST_S, late)

    async def _life(self) -> int | None:
        """Live one process; None: it was killed."""
        with anyio.CancelScope() as mortal:
            door = self.door(mortal.cancel)
            try:
                async with self.client(door) as client:
                    await _Session(self, door, client).play()
                return 0
            except GivesUp:
                return 1 if door.alive else None
            except Dies:
                return None
        return None

    def door(self, killed: Callable[[], None]) -> Door:
        """Return a process's way to the disk."""
        door = Door(
            self.disk,
            self.plans,
            self.scribe,
            number=self.server.site.number,
            shown=self.shown,
            killed=killed,
            spins=lambda: self._spins(door),
        )
        return door

    def _spins(self, door: Door) -> None:
        """End a process that goes round and round without waiting: the case's time passes meanwhile."""
        self.clock.oversleep(LONGEST_S)
        door.die()
        self._stop()

    def client(self, door: Door) -> reattach.AsyncClient:
        def writer(store: Any, soon: Any) -> Any:
            if not self.plans.any_of("store-failure"):
                return Writer(store)
            door.writer = LateWriter(store, soon, self.clock, door.lags())
            return door.writer

        def token() -> str:
            self.tokens += 1
            return f"token-{self.tokens}"

        more = {} if self.step is None else {"step": self.step}
        return reattach.AsyncClient(
            URL,
            door.store(),
            token=token,
            transport=self.server.wire,
            policy=POLICY,
            on_gap=self.on_gap,
            _seams=Seams(clock=lambda: self.clock, writer=writer, **more),
        )


class _Session:
    """The application in one process: three runs, one after the other; what was done in an earlier life is not done again."""

    def __init__(self, stage: _Stage, door: Door, client: reattach.AsyncClient) -> None:
        self.stage = stage
        self.door = door
        self.client = client
        self.write = stage.scribe.write

    async def play(self) -> None:
        ids = self.stage.ids
        for key, number in NUMBERS.items():
            if number in self.stage.cast and number not in ids:
                body = {"input": f"work {number}", "session_id": "ses_1"}
                run = await self.tried(partial(self.client.start, body, key=key))
                ids[number] = await self.follow(run)
        if 3 in self.stage.cast and 3 not in ids:
            paused = self.client.attach(ids[2])
            outcome = await self.tried(paused.wait)
            answers = [action.approve() for action in outcome.required_actions]
            run = await self.tried(lambda: paused.respond(*answers))
            ids[3] = await self.follow(run)
        if self.stage.plans.any_on("list"):
            await self.tried(lambda: self.client.session_runs("ses_1"))
        if self.stage.plans.any_on("cancel"):
            await self.tried(self.client.attach(ids[2]).cancel)  # a pause that was answered: it changes nothing

    async def tried(self, call: Callable[[], Any]) -> Any:
        """Call, and call again where that may help.

        Raises:
            GivesUp: It does not.
        """
        for _ in range(ENTRIES):
            try:
                return await call()
            except reattach.ReattachError as error:
                self.told(None, error)
        raise GivesUp

    async def follow(self, run: reattach.AsyncRun) -> str:
        """Follow a run to its end, and return its id."""
        for _ in range(ENTRIES):
            try:
                async for event in run:
                    await self.shows(run, event)
                outcome = await run.wait()
            except reattach.ReattachError as error:
                self.told(run.id, error)
                continue
            if not self.door.alive:
                raise Dies
            self.write(Finished, run=run.id, status=outcome.status.value, evidence=outcome.evidence)
            return run.id
        raise GivesUp

    async def shows(self, run: reattach.AsyncRun, event: reattach.Event) -> None:
        """Be handed an event."""
        if not self.door.alive:
            raise Dies
        gap = event.gap
        self.stage.shown[run.id, event.position] = None if gap is not None else event.id
        if gap is not None:
            self.write(
                Surfaced,
                run=run.id,
                what="gap",
                reason=gap.reason,
                after=gap.after,
                until=gap.until,
                missing=gap.missing,
            )
        else:
            sha256 = content_sha256(event.data)
            self.write(Delivered, run=run.id, id=event.id, redelivered=event.redelivered, sha256=sha256)
            self.door.meet(Place.DELIVERED, run.id, event.sequence or 0)
            await self.acknowledges(run, event)
        if not self.door.alive:
            raise Dies
        if self.door.second is not None:
            await self.second(run)

    async def acknowledges(self, run: reattach.AsyncRun, event: reattach.Event) -> None:
        """Confirm an event aloud where a fault waits for that."""
        if not self.door.alive or not self.stage.plans.any_at(Place.ACKNOWLEDGED):
            return
        await run.ack(event)
        if self.door.alive:
            self.write(Acked, run=run.id, id=event.id)
            self.door.meet(Place.ACKNOWLEDGED, run.id, event.sequence or 0)

    async def second(self, run: reattach.AsyncRun) -> None:
        """Let another process try to follow on the same store; it must be refused, or show nothing twice."""
        stage, plan = self.stage, self.door.second
        self.door.second = None
        assert plan is not None
        stage.plans.fire(plan, run=run.id)
        other = stage.door(lambda: None)
        try:
            async with stage.client(other) as client:
                async for event in client.attach(run.id):
                    self.write(Delivered, run=run.id, id=event.id, redelivered=event.redelivered)
        except reattach.ReattachError as error:
            self.write(Said, run=run.id, text=type(error).__name__)

    def told(self, run_id: str | None, error: reattach.ReattachError) -> None:
        """Be told of an error; go on only where trying again may help.

        Raises:
            Dies: It is the process that is dead.
            GivesUp: There is no way on.
        """
        if not self.door.alive:
            raise Dies from error
        self.write(Surfaced, run=run_id or error.run_id or None, what="error", reason=type(error).__name__)
        if isinstance(error, reattach.ResumeRejected | reattach.AttachError):
            raise GivesUp from error
