"""A server that declares that what it keeps in memory survives a power cut."""

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer


class ClaimsTooMuch(WrongServer):
    """See the module."""

    id = "claims-too-much"
    words = "declares that what it keeps in memory survives a power cut"
    breaks = ("RS-84",)
    unseen = "no law reads the discovery document"

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Claim it."""
        if scope["path"].endswith("/.well-known/reattach"):
            levels = [*answer.json["levels"], "durable"]
            return answer.saying(durability="power", levels=levels)
        return answer
