"""A server that says that a run has failed whose stream says that it is completed."""

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer, is_status


class ContradictsItsStream(WrongServer):
    """See the module."""

    id = "contradicts-its-stream"
    words = "says that a run has failed whose stream says that it is completed"
    breaks = ("RS-50", "RS-51")
    found_by = ("I12",)
    anomaly = "false end"

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Call a success a failure."""
        if is_status(scope) and answer.status == 200 and answer.json["status"] == "completed":
            return answer.saying(status="failed", error={"code": "lost"})
        return answer
