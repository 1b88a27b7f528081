"""A server that takes a cancel for a wish to read no more."""

from starlette.types import Scope

from reattach_mockserver.mutants.wrong import WrongServer, run_of


class CancelsNothing(WrongServer):
    """See the module."""

    id = "cancels-nothing"
    words = "takes a cancel for a wish to read no more"
    breaks = ("RS-53",)
    unseen = "the control reader waits for the end of the cancelled run, and nothing can be judged"

    async def asked(self, scope: Scope) -> Scope:
        """Close the run's streams, and read its status."""
        if not scope["path"].endswith("/cancel"):
            return scope
        self.engine.hub.close("draining", run_of(scope))
        return {**scope, "method": "GET", "path": scope["path"].removesuffix("/cancel")}
