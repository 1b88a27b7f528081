"""Makes a new key for each try of the create: a lost answer starts, and bills, the work twice."""

from reattach_chaos.mutants.small import SmallClient


class NewKeyPerRetry(SmallClient):
    """Must be killed by I8."""

    def key_of(self, tries: int) -> str:
        """Return a key of this try."""
        return f"{self.key}-{tries}"
