"""A server that names the cursor in a status that it named when the run began."""

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer, is_status


class StatusStandsStill(WrongServer):
    """See the module."""

    id = "status-stands-still"
    words = "names the cursor in a status that it named when the run began"
    breaks = ("RS-52",)
    found_by = ("I1",)
    anomaly = "lost"

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Name the first."""
        if is_status(scope) and answer.status == 200:
            return answer.saying(last_sequence=1, cursor=f"{answer.json['epoch']}.1")
        return answer
