"""A server that says for a while that a run goes on whose settling event it has sent."""

from collections import Counter

from starlette.types import Scope

from reattach_mockserver.event import SETTLED
from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer, is_status, run_of
from reattach_mockserver.settings import Settings


class SettlesLate(WrongServer):
    """See the module."""

    id = "settles-late"
    words = "says for a while that a run goes on whose settling event it has sent"
    breaks = ("RS-50",)
    unseen = "the control reader asks until a run is settled, and a client that saw the settling event asks no more"

    def given(self, settings: Settings) -> Settings:
        """Count how often each run was asked for."""
        self._asked: Counter[str] = Counter()
        return settings

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Say so to the first two who ask when it is over."""
        if is_status(scope) and answer.status == 200 and answer.json["status"] in SETTLED:
            self._asked[run_of(scope)] += 1
            if self._asked[run_of(scope)] <= 2:
                return answer.saying(status="running", ended_at=None, result=None)
        return answer
