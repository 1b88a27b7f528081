"""A server that has no discovery document."""

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer


class HasNoDiscovery(WrongServer):
    """See the module."""

    id = "has-no-discovery"
    words = "has no discovery document"
    breaks = ("RS-83",)
    unseen = "a client under test needs no discovery"

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Know nothing of it."""
        return Answer(404, {"content-length": "0"}) if scope["path"].endswith("/.well-known/reattach") else answer
