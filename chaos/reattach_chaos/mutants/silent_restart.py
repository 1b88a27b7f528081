"""Answers an expired cursor by beginning anew, without a word."""

from reattach_chaos.mutants.small import SmallClient


class SilentRestart(SmallClient):
    """Must be killed by I18. It shows what is left as if nothing had been in between."""

    def refused(self, status: int, code: str) -> None:
        """Forget the cursor."""
        self.cursor = "earliest"
