"""Gives a connection up before its heartbeat is due, again and again."""

from reattach_chaos.mutants.small import SmallClient


class HastyReadLimit(SmallClient):
    """Must be killed by I17."""

    def patience(self) -> float:
        """Return little more than half a heartbeat: a server may beat more often than it promises."""
        return self.heartbeat * 0.55
