"""What concerns one engine of what happens elsewhere: in other replicas of its log, or in a log that was away.

It hears (`logs.base.Listener`) and returns at once; one task sees to what was heard. What it hears is only a reason to look: the
log says what is so. Three things are looked for: that a run which is played here was to be cancelled; runs whose replica is gone;
and runs of our own that nobody plays, since the log gave no answer when they were created or could not be written for long.

Never here: how a run is played, who owns what (that is the log's). Checked by tests/mockserver/test_replicas.py.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from reattach_mockserver.event import SETTLED
from reattach_mockserver.logs.base import LogUnavailable, RunRecord, WriterLost

if TYPE_CHECKING:  # the engine owns this
    from reattach_mockserver.engine.engine import Engine

_SOME = 64  # orphans taken over at a time, so that other replicas get their share
_PAUSE = 0.5  # seconds between two looks at what did not come right

_logger = logging.getLogger(__name__)


class Replicas:
    """The ears of one engine."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._news = asyncio.Event()
        self._changed: set[str] = set()
        self._orphaned = False
        self._missed = False
        self._ours = False
        self._unplayed: dict[str, int] = {}
        self._unplayable: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    # Hearing

    def changed(self, run_id: str) -> None:
        """Wake the run's readers; if it is played here, see whether it is to be cancelled."""
        self._engine.hub.wake(run_id)
        if self._engine.players.plays(run_id):
            self._changed.add(run_id)
            self._news.set()

    def orphaned(self) -> None:
        """Take over what nobody plays."""
        self._orphaned = True
        self._news.set()

    def revoked(self, token: str) -> None:
        """Let the token be good no more here too."""
        self._engine.revoked.add(token)

    def missed(self) -> None:
        """Look at everything again."""
        self._engine.hub.wake_all()
        self._missed = self._ours = True
        self._news.set()

    def unplayed(self) -> None:
        """Look for runs of our own that nobody plays."""
        self._ours = True
        self._news.set()

    # Seeing to it

    def start(self) -> None:
        """Begin to see to what is heard."""
        self._task = asyncio.create_task(self._run(), name="replicas")

    async def stop(self) -> None:
        """See to nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._look()
            except LogUnavailable:
                self._ours = True  # a run may have been taken over, and is not played yet
                self._look_again()
            except Exception:
                # Whoever is not heard any more would leave runs unplayed: it goes on with the next news.
                _logger.exception("seeing to what other replicas did failed")

    def _look_again(self) -> None:
        asyncio.get_running_loop().call_later(_PAUSE, self._news.set)

    async def _look(self) -> None:
        if self._missed:
            self._engine.revoked |= await self._engine.log.revoked()
            self._changed |= self._engine.players.playing()
            self._missed = False
        while self._changed:
            run_id = next(iter(self._changed))
            run = await self._engine.log.run(run_id)
            if run is not None:
                self._engine.players.cancel(run)
            self._changed.discard(run_id)
        if self._ours:
            await self._look_at_ours()
        if self._orphaned:
            self._orphaned = False
            await self._adopt_orphans()

    async def _look_at_ours(self) -> None:
        """Play what is ours and not played, the second time that it is found so: it may be about to be."""
        found = {run.id: run for run in await self._engine.log.owned() if not self._engine.players.plays(run.id)}
        again = [run for run in found.values() if self._unplayed.get(run.id) == run.writer]
        self._unplayed = {run.id: run.writer for run in found.values()}
        for run in again:
            await self._adopt(run)
            del self._unplayed[run.id]
        self._ours = bool(self._unplayed.keys() - self._unplayable)
        if self._ours:
            self._look_again()

    async def _adopt_orphans(self) -> None:
        while True:
            adopted = [await self._adopt(run) for run in await self._engine.log.orphans(_SOME)]
            if not any(adopted):
                return

    async def _adopt(self, run: RunRecord) -> bool:
        """Take the run over and play it; return whether it is ours now."""
        try:
            if run.status not in SETTLED and await self._engine.players.can_play(run):
                await self._engine.adopt(run)
                return True
        except WriterLost:
            return False  # another replica was first
        if run.id not in self._unplayable:
            self._unplayable.add(run.id)
            _logger.error("run %s cannot be played here: scenario %r was not given", run.id, run.script)
        return False
