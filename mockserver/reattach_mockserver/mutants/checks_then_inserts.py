"""A server that looks for a key, and creates later: two creates at once are two runs."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from reattach_mockserver.engine.turns import Turns
from reattach_mockserver.event import Entry
from reattach_mockserver.logs.base import Answers, RunRecord
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.mutants.wrong import WrongServer
from reattach_mockserver.settings import Settings


class _NoTurns(Turns):
    """Lets creates of one key go on at the same time."""

    @asynccontextmanager
    async def turn(self, principal: str, key: str, seconds: float) -> AsyncIterator[None]:
        """Let it go on."""
        yield


class _Trusting(MemoryLog):
    """Trusts that somebody has looked."""

    async def by_key(self, principal: str, key: str) -> RunRecord | None:
        """Return the run of this key; others are asked for meanwhile."""
        run = await super().by_key(principal, key)
        for _ in range(10):
            await asyncio.sleep(0)
        return run

    async def create(
        self,
        run: RunRecord,
        entries: Sequence[Entry],
        *,
        runs_limit: int | None = None,
        answers: Answers | None = None,
    ) -> tuple[RunRecord, bool]:
        """Create the run."""
        if await super().by_key(run.principal, run.key) is not None:
            run = replace(run, key=f"{run.key}.{uuid.uuid4().hex}")
        return await super().create(run, entries, runs_limit=runs_limit, answers=answers)


class ChecksThenInserts(WrongServer):
    """See the module."""

    id = "checks-then-inserts"
    words = "looks for a key, and creates later: two creates at once are two runs"
    breaks = ("RS-42",)
    unseen = "no client under test sends one create twice at the same time"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.engine.turns = _NoTurns()

    def given(self, settings: Settings) -> Settings:
        """Keep everything in a log that does not look again."""
        return replace(settings, log=_Trusting())
