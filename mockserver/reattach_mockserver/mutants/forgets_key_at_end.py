"""A server that knows the key of a run until the run is over."""

import uuid
from collections.abc import Sequence
from dataclasses import replace

from reattach_mockserver.event import SETTLED, Entry
from reattach_mockserver.logs.base import Answers, RunRecord
from reattach_mockserver.logs.memory import MemoryLog
from reattach_mockserver.mutants.wrong import WrongServer
from reattach_mockserver.settings import Settings


class _Forgetful(MemoryLog):
    """Forgets keys."""

    async def by_key(self, principal: str, key: str) -> RunRecord | None:
        """Return the run of this key while it is not settled."""
        run = await super().by_key(principal, key)
        return None if run is None or run.status in SETTLED else run

    async def create(
        self,
        run: RunRecord,
        entries: Sequence[Entry],
        *,
        runs_limit: int | None = None,
        answers: Answers | None = None,
    ) -> tuple[RunRecord, bool]:
        """Create the run, under another key where this one is taken."""
        if (
            await super().by_key(run.principal, run.key) is not None
            and await self.by_key(run.principal, run.key) is None
        ):
            run = replace(run, key=f"{run.key}.{uuid.uuid4().hex}")
        return await super().create(run, entries, runs_limit=runs_limit, answers=answers)


class ForgetsKeyAtEnd(WrongServer):
    """See the module."""

    id = "forgets-key-at-end"
    words = "knows the key of a run until the run is over"
    breaks = ("RS-44",)
    found_by, anomaly = ("I8",), "second run"

    def given(self, settings: Settings) -> Settings:
        """Keep everything in a forgetful log."""
        return replace(settings, log=_Forgetful())
