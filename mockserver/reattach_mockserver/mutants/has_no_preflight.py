"""A server that refuses what a browser of another origin asks first."""

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer


class HasNoPreflight(WrongServer):
    """See the module."""

    id = "has-no-preflight"
    words = "refuses what a browser of another origin asks first"
    breaks = ("RS-82",)
    unseen = "no client under test is a browser"

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Answer an OPTIONS as if nobody had thought of it."""
        return Answer(405, {"content-length": "0"}) if scope["method"] == "OPTIONS" else answer
