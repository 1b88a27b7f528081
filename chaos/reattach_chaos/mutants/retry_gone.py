"""Asks again for what is gone, politely, for ever."""

from reattach_chaos.mutants.small import SmallClient


class RetryGone(SmallClient):
    """Must be killed by I15. It gives up after many hours."""

    def refused(self, status: int, code: str) -> None:
        """Take it for something that passes."""
        self.last_good = self.world.now() - 1.0 if self.fruitless < 40 else 0.0
