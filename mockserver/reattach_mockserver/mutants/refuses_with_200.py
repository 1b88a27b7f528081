"""A server that answers 200 with the error in it where it refuses."""

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer


class RefusesWith200(WrongServer):
    """See the module."""

    id = "refuses-with-200"
    words = "answers 200 with the error in it where it refuses"
    breaks = ("RS-68",)
    unseen = "a client that is answered with what is no stream may end its watch, and who answered so is not told apart"

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Say that all is well."""
        if answer.status >= 400:
            answer.status = 200
            answer.headers["content-type"] = "application/json"
        return answer
