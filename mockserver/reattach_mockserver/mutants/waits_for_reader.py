"""A server that goes on with a run while somebody reads it, and no longer."""

import asyncio
from dataclasses import replace

from reattach_mockserver.mutants.wrong import WrongServer
from reattach_mockserver.settings import Settings


class WaitsForReader(WrongServer):
    """See the module."""

    id = "waits-for-reader"
    words = "goes on with a run while somebody reads it, and no longer"
    breaks = ("RS-40", "RS-39")
    unseen = "the clean pass, which nobody watches, does not come to its end: nothing can be played"

    def given(self, settings: Settings) -> Settings:
        """Hear of each append before it is made."""
        return replace(settings, hooks=replace(settings.hooks, appending=self._appending))

    async def _appending(self, run_id: str, sequence: int) -> None:
        for _ in range(1200):  # a minute: a server under test is to end some time
            if self.engine.hub.readers(run_id):
                return
            await asyncio.sleep(0.05)
