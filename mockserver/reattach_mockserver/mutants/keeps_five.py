"""A server that states no retention, and keeps five events."""

from dataclasses import replace

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer
from reattach_mockserver.settings import Settings


class KeepsFive(WrongServer):
    """See the module."""

    id = "keeps-five"
    words = "states no retention, and keeps five events"
    breaks = ("RS-32",)
    unseen = "the control reader cannot read the log either, and nothing can be judged"

    def given(self, settings: Settings) -> Settings:
        """Keep five events of a run."""
        return replace(settings, limits=replace(settings.limits, retention_events=5))

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """State nothing."""
        if not scope["path"].endswith("/.well-known/reattach"):
            return answer
        return answer.saying(limits={**answer.json["limits"], "retention_events": None})
