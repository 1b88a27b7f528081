"""A server that does the work of a tool again for each resume."""

import uuid
from dataclasses import replace

from starlette.types import Scope

from reattach_mockserver.mutants.wrong import WrongServer, is_attach, run_of, word_of


class WorksForWatchers(WrongServer):
    """See the module."""

    id = "works-for-watchers"
    words = "does the work of a tool again for each resume"
    breaks = ("RS-38", "RS-45")
    found_by = ("I9",)
    anomaly = "double effect"

    async def asked(self, scope: Scope) -> Scope:
        """Do what the run did, under an operation id that nobody has seen."""
        run_id = run_of(scope)
        if is_attach(scope) and word_of(scope) is not None and await self.engine.log.run(run_id) is not None:
            for effect in (await self.engine.log.effects(run_id))[:1]:
                await self.engine.log.perform(replace(effect, operation_id=f"op_{uuid.uuid4().hex}"))
        return scope
