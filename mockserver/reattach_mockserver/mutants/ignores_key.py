"""A server that creates a run for each create, whatever its key."""

import uuid

from starlette.types import Scope

from reattach_mockserver.mutants.wrong import WrongServer


class IgnoresKey(WrongServer):
    """See the module."""

    id = "ignores-key"
    words = "creates a run for each create, whatever its key"
    breaks = ("RS-41",)
    found_by = ("I8",)
    anomaly = "second run"

    async def asked(self, scope: Scope) -> Scope:
        """Give each create a key that nobody else has; the one that was sent is its beginning."""
        headers = [
            (name, value + f".{uuid.uuid4().hex}".encode() if name == b"idempotency-key" else value)
            for name, value in scope["headers"]
        ]
        return {**scope, "headers": headers}
