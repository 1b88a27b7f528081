"""Playing a schedule: a model server, a disk, and the client as an application uses it. Here through the asynchronous face."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable

import anyio

import reattach
from client.cuts.laws import Watch
from client.cuts.process import Disk, Process
from client.cuts.schedule import HEARTBEAT_MS, Life, Schedule
from reattach import errors
from reattach.core.subscription import step
from reattach.runtime.engine import Step
from reattach.runtime.loop import Soon
from reattach.runtime.setup import Seams
from reattach.runtime.writer import InlineWriter, Writer
from reattach.stores.base import Store
from reattach.testing import LateWriter, MemoryServer, Sent, VirtualClock
from reattach.testing.memory_server import URL

LONGEST = 900.0
"""Virtual seconds after which a schedule is taken for stuck."""
FOLLOW = Life(take=None, do="break", at=-1.0)
"""The last life: to the end."""
ENTRIES = 40
"""Loops after which an application that is told again and again to try again stops."""


class Dies(Exception):
    """The process is killed in the middle of the application's own code."""


class HandlerFails(Exception):
    """The application's own fault."""


class Played:
    """One schedule on its stage."""

    def __init__(self, schedule: Schedule, machine: Step, *, socket: bool = False) -> None:
        self.url = URL.replace("http", "ws") if socket else URL
        self.schedule = schedule
        self.machine = machine
        self.clock = VirtualClock(seed=schedule.seed, autojump=True, jitter=schedule.jitter)
        self.server = MemoryServer(
            self.clock,
            beats=schedule.beats,
            legs=schedule.legs,
            creates=schedule.creates,
            statuses=schedule.statuses,
            snapshots=schedule.snapshots,
            heartbeat_ms=HEARTBEAT_MS,
        )
        self.disk = Disk(self.clock.time, schedule.failures)
        self.watch = Watch(schedule, self.server, self.disk, self.clock.now)
        self.lives = iter(schedule.lives)
        self.now_alive: Process | None = None
        self.closing = False
        """Closing waits for real threads, and virtual time runs far meanwhile: it has the test's own limit."""
        self._looked_at = -1
        self._looks = 0

    def process(self) -> Process:
        """Begin a new process."""
        self.now_alive = Process(self.disk, self.watch.noted, self.watch.consumes, self._beyond)
        return self.now_alive

    def _beyond(self, position: int) -> None:
        """Somebody reads where nothing is: once is to see that there is nothing, again and again is to wait for the disk."""
        self._looks = self._looks + 1 if position == self._looked_at else 0
        self._looked_at = position
        if self._looks > ENTRIES:
            self.give_up("delivered <= committed", f"what comes after {position} may be read, and is not there")

    def give_up(self, law: str, detail: str) -> None:
        """It cannot come to an end: end it as a death, which waits for nothing."""
        self.watch.say(law, detail)
        if self.now_alive is not None:
            self.now_alive.die(0)

    def guard(self, end: Callable[[], None]) -> None:
        """Call `end` when the schedule takes too long, or attaches too often."""

        def stuck() -> None:
            if self.closing:
                self.clock.call_at(self.clock.now() + LONGEST, stuck)
                return
            self.give_up("every schedule ends", f"not within {LONGEST:g} s")
            end()

        def attached(sent: Sent) -> None:
            if not self.watch.attaches(sent):
                self.give_up("a bounded number of attaches", "no end of them")
                end()

        self.server.attached = attached
        self.server.ended = self.watch.parts
        self.clock.call_at(LONGEST, stuck)

    def seams(self, process: Process) -> Seams:
        """Return what replaces time, the writer and the core."""

        def writer(store: Store, soon: Soon) -> Writer:
            if not self.schedule.lags:
                return InlineWriter(store, soon)
            process.writer = LateWriter(store, soon, self.clock, itertools.cycle(self.schedule.lags))
            return process.writer

        return Seams(clock=lambda: self.clock, writer=writer, step=self.machine)


async def play(schedule: Schedule, machine: Step = step, *, socket: bool = False) -> list[str]:
    """Play a schedule through the asynchronous face; return the laws that were broken, each as a sentence.

    With `socket` what is cut is a WebSocket: its messages in place of a stream's blocks.
    """
    stage = Played(schedule, machine, socket=socket)
    watch = stage.watch
    over = False
    with anyio.CancelScope() as whole:
        stage.guard(whole.cancel)
        while not over and not watch.broken:
            over = await _process(stage)
    watch.over()
    return watch.broken


async def _process(stage: Played) -> bool:
    """Live one process; True: nothing is left to do."""
    process = stage.process()
    schedule, watch = stage.schedule, stage.watch
    entries = 0
    with contextlib.suppress(Dies), anyio.CancelScope() as mortal:

        def begin(life: Life) -> Life:
            """Set the hour of death, if this life has one."""
            if life.take is None and life.at >= 0:

                def killed() -> None:
                    process.die(life.reached)
                    mortal.cancel()

                stage.clock.call_at(stage.clock.now() + life.at, killed)
            return life

        async with reattach.AsyncClient(
            stage.url,
            process,
            transport=stage.server.wire,
            policy=schedule.policy,
            on_gap=schedule.on_gap,
            _seams=stage.seams(process),
        ) as client:
            life = begin(next(stage.lives, FOLLOW))
            run = await client.start("work", key="k1")
            while entries < ENTRIES:
                entries += 1
                watch.enters()
                left = life.take
                try:
                    async for event in run:
                        watch.hands(event)
                        if left is not None:
                            left -= 1
                            if left <= 0 and life.do == "raise":
                                raise HandlerFails
                            if left <= 0:
                                break
                    else:
                        watch.ends()
                        watch.outcome(await run.wait())
                        return True
                except HandlerFails:
                    pass
                except errors.ReattachError as error:
                    if not process.alive:
                        raise Dies from error
                    if watch.fails(error):
                        continue
                    return True
                match life.do:
                    case "die":
                        process.die(life.reached)
                        raise Dies
                    case "close":
                        return False
                    case "detach":
                        await run.detach()
                    case _:
                        pass
                life = begin(next(stage.lives, FOLLOW))
            watch.say("every schedule ends", f"not within {ENTRIES} loops")
            return True
    return False
