"""Shows first, saves then: after a kill between the two, the screen has shown what nobody has."""

from typing import Any

from reattach_chaos.mutants.small import SmallClient


class DeliverBeforeCommit(SmallClient):
    """Must be killed by I4."""

    def admit(self, entry: dict[str, Any]) -> None:
        """Show an event, then make it durable."""
        self.admitted.add(self.identity(entry))
        self.present(entry)
        self.commit(entry)
        self.progress()
        self.confirm(entry)
