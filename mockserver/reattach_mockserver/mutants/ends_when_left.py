"""A server that cancels a run when its reader leaves."""

from reattach_mockserver.event import SETTLED
from reattach_mockserver.mutants.wrong import WrongServer


class EndsWhenLeft(WrongServer):
    """See the module."""

    id = "ends-when-left"
    words = "cancels a run when its reader leaves"
    breaks = ("RS-39",)
    found_by = ("I10",)
    anomaly = "lost"

    async def left(self, run_id: str) -> None:
        """Cancel what nobody reads any more."""
        run = await self.engine.log.run(run_id)
        if run is not None and run.status not in SETTLED and self.engine.started:
            await self.engine.cancel(run)
