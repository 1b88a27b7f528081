"""Writes to its store whoever has taken it over: a paused process wakes and shows all that its successor has shown."""

from reattach_chaos.mutants.small import SmallClient
from reattach_chaos.mutants.world import World


class TwoAppliers(SmallClient):
    """Must be killed by I2."""

    def __init__(self, world: World, run: str | None = None, *, key: str = "key", heartbeat: float = 1.0) -> None:
        super().__init__(world, run, key=key, heartbeat=heartbeat)
        self.token = None
