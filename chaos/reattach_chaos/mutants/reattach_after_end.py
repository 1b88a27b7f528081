"""Attaches once more after the settling event, to be sure."""

from reattach_chaos.mutants.small import SmallClient


class ReattachAfterEnd(SmallClient):
    """Must be killed by I16."""

    sure = False

    def done(self) -> bool:
        """Return whether it was looked at once more."""
        if super().done() and not self.sure:
            self.sure = True
            self.world.attach(self.run_id or "", self.cursor).close()
        return super().done()
