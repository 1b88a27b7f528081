"""Playing a schedule through the blocking face: as `play`, but the application is a thread of its own.

Virtual time may move only while that thread waits for the client. What it waits for ends in the loop, so the loop is where time
is stopped again, before the thread can know: otherwise seconds would pass while the operating system wakes it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import reattach
from client.cuts.play import ENTRIES, FOLLOW, Dies, HandlerFails, Played
from client.cuts.process import Process
from client.cuts.schedule import Schedule
from reattach import errors
from reattach.core.subscription import step
from reattach.runtime.engine import Step
from reattach.runtime.portal import Portal, portal
from reattach.testing import VirtualClock

_call = Portal.call


class Paced(threading.Event):
    """What a blocked loop waits on; time moves exactly as long as somebody does."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self._waited_for = False
        self._guard = threading.Lock()

    def wait(self, timeout: float | None = None) -> bool:
        with self._guard:
            if self.is_set():
                return True
            self._waited_for = True
        self._clock.release()
        return super().wait(timeout)

    def set(self) -> None:
        with self._guard:
            waited, self._waited_for = self._waited_for, False
            if waited:
                self._clock.hold()
            super().set()


@contextlib.contextmanager
def _paced(clock: VirtualClock) -> Iterator[None]:
    """Time stands, but for what the application waits for in the portal's loop."""

    def call(self: Portal, function: Callable[..., Any], *args: Any) -> Any:
        async def timed() -> Any:
            clock.release()
            try:
                return await function(*args)
            finally:
                clock.hold()

        return _call(self, timed)

    with clock.held(), patch.object(Portal, "call", call):
        yield


def play_blocking(schedule: Schedule, machine: Step = step, *, socket: bool = False) -> list[str]:
    """Play a schedule through the blocking face, time standing still while the application's own code runs.

    Nobody can be killed in the middle of a call here without killing the thread: a death at a time is one after a few events.
    """
    stage = Played(schedule, machine, socket=socket)
    clients: list[reattach.Client] = []

    def end() -> None:
        threading.Thread(target=clients[-1].close).start()  # this is the loop's thread, for which close() waits

    stage.guard(end)
    with _paced(stage.clock):
        while not _blocking_process(stage, clients) and not stage.watch.broken:
            pass
    stage.watch.over()
    return stage.watch.broken


def _blocking_process(stage: Played, clients: list[reattach.Client]) -> bool:
    """As `_process`."""
    process, watch = stage.process(), stage.watch
    client = reattach.Client(
        stage.url,
        process,
        transport=stage.server.wire,
        policy=stage.schedule.policy,
        on_gap=stage.schedule.on_gap,
        _seams=stage.seams(process),
    )
    clients.append(client)
    try:
        return _blocking_loops(stage, client, process)
    except Dies:
        return False
    except errors.ReattachError as error:
        if process.alive and not watch.broken:
            watch.say("an error has a cause", repr(error))
        return False
    finally:
        stage.closing = True
        stage.clock.release()
        client.close()
        stage.clock.hold()
        stage.closing = False


def _blocking_loops(stage: Played, client: reattach.Client, process: Process) -> bool:
    watch = stage.watch
    run = client.start("work", key="k1")
    run._wake = Paced(stage.clock)
    for life in (*stage.lives, *[FOLLOW] * ENTRIES):
        watch.enters()
        left = None if life is FOLLOW else int(life.at) + 1 if life.take is None else life.take
        try:
            for event in run:
                watch.hands(event)
                if left is not None:
                    left -= 1
                    if left <= 0 and life.do == "raise":
                        raise HandlerFails
                    if left <= 0:
                        break
            else:
                watch.ends()
                watch.outcome(run.wait())
                return True
        except HandlerFails:
            pass
        except errors.Closed:
            raise
        except errors.ReattachError as error:
            if process.alive and watch.fails(error):
                continue
            return process.alive
        if life.do == "die":
            portal().call(_die, process, life.reached)
            raise Dies
        if life.do == "close":
            return False
        if life.do == "detach":
            run.detach()
    watch.say("every schedule ends", f"not within {ENTRIES} loops")
    return True


async def _die(process: Process, reached: int) -> None:
    process.die(reached)
