"""Takes a 200 for progress: a server that answers, and closes at once, is asked without end at full speed."""

from reattach_chaos.mutants.small import SmallClient


class ResetOn200(SmallClient):
    """Must be killed by I14."""

    def opened(self) -> None:
        """Make the waits short again."""
        super().opened()
        self.fruitless = 0
