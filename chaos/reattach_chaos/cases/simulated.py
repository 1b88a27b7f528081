"""Cases that are played in memory instead of on sockets: `SimulatedPlayer` has the simulation play them, on all processors.

The schedule is the run there: nothing is tried twice. Never here: how something is simulated (`sim/`), what a history means.
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager

from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.checkers import judge
from reattach_chaos.orphans import die_with
from reattach_chaos.report import Played
from reattach_chaos.schedules import Schedule, ScheduleError
from reattach_chaos.sim import play_simulated

SIMULATED = "simulated"
"""The mode of a schedule that is played so."""


class SimulatedPlayer:
    """Plays cases, any number at a time.

    Args:
        pool: Where they are played.
    """

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    async def play(self, schedule: Schedule) -> Played:
        """Play a case.

        Raises:
            ScheduleError: The simulation has no such scenario.
            ServerTrouble: A process of ours is gone.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, _played, schedule)
        except ValueError as error:
            raise ScheduleError(f"case {schedule.id} cannot be played: {error}") from error
        except BrokenProcessPool as error:
            raise ServerTrouble(f"a process of the simulation ended: {error}") from error


@asynccontextmanager
async def simulation() -> AsyncIterator[SimulatedPlayer]:
    """Start the processes, and end them."""
    # Not forked: the embedded proxy and others have threads here.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(os.cpu_count() or 1, context, initializer=_begin, initargs=(os.getpid(),))
    try:
        yield SimulatedPlayer(pool)
    finally:
        await asyncio.to_thread(pool.shutdown, cancel_futures=True)


def _begin(parent: int) -> None:
    """A Ctrl-C is for who started us, and ends us in order; its end by kill -9 ends us, too: the pool's pipe would not tell."""
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _played(schedule: Schedule) -> Played:
    history = play_simulated(schedule)
    return Played(schedule=schedule, history=history, verdict=judge(history))
