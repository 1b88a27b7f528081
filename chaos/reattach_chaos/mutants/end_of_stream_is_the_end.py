"""Takes the end of the stream for the end of the run."""

from reattach_chaos.mutants.small import SmallClient


class EndOfStreamIsTheEnd(SmallClient):
    """Must be killed by I11."""

    believed = False

    def ended(self) -> None:
        """Believe it."""
        self.believed = True
        self.world.say({"kind": "finished", "status": "completed"})

    def done(self) -> bool:
        """Return whether an end was believed."""
        return self.believed or super().done()
