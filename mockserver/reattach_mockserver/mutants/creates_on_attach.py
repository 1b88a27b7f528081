"""A server that makes a run where one that is not there is asked for."""

import json
import uuid

from starlette.types import Scope

from reattach_mockserver.faces.create import create_run
from reattach_mockserver.faces.inside import Inside, json_body
from reattach_mockserver.mutants.wrong import WrongServer, asking, is_attach, run_of


class CreatesOnAttach(WrongServer):
    """See the module."""

    id = "creates-on-attach"
    words = "makes a run where one that is not there is asked for"
    breaks = ("RS-36",)
    unseen = "no client under test asks for a run that is not there"

    async def asked(self, scope: Scope) -> Scope:
        """Make the run, and read that."""
        if not is_attach(scope) or await self.engine.log.run(run_of(scope)) is not None:
            return scope
        tokens = [value for name, value in scope["headers"] if name == b"authorization"]
        call = Inside(scope, tokens).call(
            "POST", headers=[("idempotency-key", uuid.uuid4().hex)], body=json_body({"input": ""})
        )
        made = json.loads((await call.answered(create_run, self.engine)).body)["id"]
        return {**asking(scope, None), "path": scope["path"].replace(run_of(scope), made)}
