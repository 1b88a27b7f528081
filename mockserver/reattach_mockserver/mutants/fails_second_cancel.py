"""A server that fails when it is asked to cancel a second time."""

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer, run_of
from reattach_mockserver.settings import Settings


class FailsSecondCancel(WrongServer):
    """See the module."""

    id = "fails-second-cancel"
    words = "fails when it is asked to cancel a second time"
    breaks = ("RS-53",)
    unseen = "a right client that is answered 500 looks at the run, and finds it cancelled"

    def given(self, settings: Settings) -> Settings:
        """Remember what was cancelled."""
        self._cancelled: set[str] = set()
        return settings

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Fail at the second."""
        if scope["path"].endswith("/cancel") and answer.status < 300:
            if run_of(scope) in self._cancelled:
                return Answer(500, {"content-length": "0"})
            self._cancelled.add(run_of(scope))
        return answer
