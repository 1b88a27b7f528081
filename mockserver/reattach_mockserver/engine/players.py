"""Who plays what: makes the player or worker of a run, keeps its task, hears of its end.

A run is played by one task, here and nowhere else, and never by whoever reads it. Whether a run may be played here is the log's
word (its writer token) and the engine's decision; what it plays is its script's. Never here: a log's writes, a reader.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeAlias

from reattach_mockserver.engine.clock import RunClock
from reattach_mockserver.engine.continuation import approvals, openings
from reattach_mockserver.engine.player import Player, Stage
from reattach_mockserver.engine.publisher import Publisher
from reattach_mockserver.engine.score import dues, dues_after, is_virtual, limits_for
from reattach_mockserver.engine.server_clock import ServerClock
from reattach_mockserver.engine.timeline import Due
from reattach_mockserver.engine.work import Work, close_work, is_work
from reattach_mockserver.engine.worker import Worker, WorkStage
from reattach_mockserver.event import SETTLED
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.scenarios.script import ServerStep
from reattach_mockserver.settings import Playable, Settings

Operate: TypeAlias = Callable[[RunRecord, ServerStep], Awaitable[RunRecord]]


class UnknownScript(Exception):
    """A run needs a script that this server was not given."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no scenario is called {name!r}")
        self.name = name


class Players:
    """The players of one engine.

    Args:
        settings: With the scripts, and the engine's own `now`.
        publisher: Appends for all of them.
        clock: The server's.
        operate: Does a step that concerns the server.
        lost: Is told that a player ended in a failure; its run is not played any more.
    """

    def __init__(
        self,
        settings: Settings,
        publisher: Publisher,
        clock: ServerClock,
        operate: Operate,
        lost: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._publisher = publisher
        self._clock = clock
        self._operate = operate
        self._lost = lost
        self._playing: dict[str, tuple[Player | Worker, asyncio.Task[None]]] = {}
        self._works: dict[int, Work] = {}

    # What may be played

    def playable(self, name: str) -> Playable:
        """Return the script of this name.

        Raises:
            UnknownScript: There is none.
        """
        try:
            return self._settings.scripts[name]
        except KeyError:
            raise UnknownScript(name) from None

    async def check(self, run: RunRecord) -> None:
        """Find out that this server was given what the run plays.

        Raises:
            UnknownScript: It was not.
        """
        if not is_work(self.playable(run.script)):
            await self._dues(run)

    async def can_play(self, run: RunRecord) -> bool:
        """Tell whether this server was given what the run plays."""
        try:
            await self.check(run)
        except UnknownScript:
            return False
        return True

    def looks_back(self, run: RunRecord) -> bool:
        """Tell whether what plays the run may look at its first events: a plug-in's work does."""
        return run.status not in SETTLED and is_work(self._settings.scripts.get(run.script))

    # What is played

    def plays(self, run_id: str) -> bool:
        """Tell whether the run is played here."""
        return run_id in self._playing

    def playing(self) -> set[str]:
        """Return the runs that are played here."""
        return set(self._playing)

    async def play(self, run: RunRecord) -> None:
        """Play a run that is ours."""
        player = await self._player(run)
        task = asyncio.create_task(player.play(), name=f"player of {run.id}")
        self._playing[run.id] = (player, task)
        task.add_done_callback(partial(self._forget, run.id))

    def cancel(self, run: RunRecord) -> None:
        """Tell the run's player, if it is here, that a cancel was recorded, if one was."""
        found = self._playing.get(run.id)
        if found is not None and run.status not in SETTLED and run.cancel_reason is not None:
            found[0].cancel(run.cancel_reason)

    def look_at_the_clock(self) -> None:
        """The server's clock was moved: what waits for a time that has come goes on."""
        for player, _ in self._playing.values():
            if isinstance(player, Player):  # a work keeps no time of a script
                player.look_at_the_clock()

    def drop(self, run_id: str) -> asyncio.Task[None] | None:
        """Let a run's player end, and know nothing of it any more; return its task, None where it is not played here."""
        _, task = self._playing.pop(run_id, (None, None))
        if task is not None:
            task.cancel()
        return task

    async def end(self) -> None:
        """End every player and close every work. Called by none of them."""
        tasks = [self.drop(run_id) for run_id in self.playing()]
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)
        works, self._works = list(self._works.values()), {}
        for work in works:
            await close_work(work)

    def _forget(self, run_id: str, task: asyncio.Task[None]) -> None:
        if run_id in self._playing and self._playing[run_id][1] is task:
            del self._playing[run_id]
        if not task.cancelled() and task.exception() is not None:
            self._lost()  # the log could not be written for long: it is gone on with when it can

    async def _player(self, run: RunRecord) -> Player | Worker:
        playable, paused = self.playable(run.script), await self._before(run)
        clock = RunClock(
            virtual=is_virtual(playable),
            scripted=self._settings.deterministic,
            created_at=run.created_at,
            now=self._clock.now,
            ticks=self._clock.ticks,
        )
        begins = () if paused is None else openings(paused)
        limits = limits_for(self._settings, run.script)
        if is_work(playable):
            self._works[id(playable)] = playable
            return Worker(
                WorkStage(
                    run=run,
                    work=playable,
                    limits=limits,
                    clock=clock,
                    log=self._settings.log,
                    publisher=self._publisher,
                    hooks=self._settings.hooks,
                    openings=begins,
                )
            )
        stage = Stage(
            run=run,
            dues=await self._dues(run),
            limits=limits,
            clock=clock,
            log=self._settings.log,
            publisher=self._publisher,
            operate=self._operate,
            openings=begins,
            approved=() if paused is None else approvals(paused),
        )
        return Player(stage)

    async def _before(self, run: RunRecord) -> RunRecord | None:
        return None if run.continues is None else await self._settings.log.run(run.continues)

    async def _dues(self, run: RunRecord) -> Iterator[Due]:
        playable, paused = self.playable(run.script), await self._before(run)
        if paused is None or paused.script != run.script:
            return dues(playable, self._settings.seed)
        try:
            return dues_after(paused, playable, self._settings.seed)
        except KeyError:
            raise UnknownScript(f"{run.script} (with the ask that run {paused.id} paused at)") from None
