"""A server that says of a run that is over that it goes on, every other time."""

from starlette.types import Scope

from reattach_mockserver.event import SETTLED
from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer, is_status
from reattach_mockserver.settings import Settings


class GoesBack(WrongServer):
    """See the module."""

    id = "goes-back"
    words = "says of a run that is over that it goes on, every other time"
    breaks = ("RS-51",)
    found_by, anomaly = ("I12",), "false end"

    def given(self, settings: Settings) -> Settings:
        """Count how often a status was read."""
        self._asked = 0
        return settings

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Take it back every other time."""
        if is_status(scope) and answer.status == 200 and answer.json["status"] in SETTLED:
            self._asked += 1
            if self._asked % 2 == 0:
                return answer.saying(status="running")
        return answer
