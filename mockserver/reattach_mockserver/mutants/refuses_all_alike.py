"""A server that answers 500 for whatever it refuses."""

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer


class RefusesAllAlike(WrongServer):
    """See the module."""

    id = "refuses-all-alike"
    words = "answers 500 for whatever it refuses"
    breaks = ("RS-37",)
    found_by, anomaly = ("I13",), "hang"

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Have one code for everything."""
        return (
            Answer(500, {"content-type": "text/plain", "content-length": "0"}, b"Error")
            if answer.status >= 400
            else answer
        )
