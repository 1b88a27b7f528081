"""A server that does not know a run any more when its first events are gone."""

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer, is_status


class ForgetsWithEvents(WrongServer):
    """See the module."""

    id = "forgets-with-events"
    words = "does not know a run any more when its first events are gone"
    breaks = ("RS-34",)
    found_by, anomaly = ("I12",), "lost"

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Be gone with them."""
        if is_status(scope) and answer.status == 200 and answer.json["first_sequence"] > 1:
            return Answer(404, {"content-length": "0"})
        return answer
