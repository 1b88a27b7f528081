"""`SeamServer`: a wrong server that knows which of its streams have come from replay to live."""

import asyncio
from dataclasses import replace
from weakref import WeakSet

from reattach_mockserver.mutants.wrong import WrongServer
from reattach_mockserver.settings import Settings


class SeamServer(WrongServer):
    """See the module."""

    def given(self, settings: Settings) -> Settings:
        """Hear where a replay has come to its end: in the task of its stream."""
        self._joined: WeakSet[asyncio.Task[object]] = WeakSet()
        return replace(settings, hooks=replace(settings.hooks, replayed=self._replayed))

    async def _replayed(self, run_id: str, sequence: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._joined.add(task)

    def is_live(self) -> bool:
        """Tell whether the stream of the running task has come to its end once."""
        return asyncio.current_task() in self._joined
