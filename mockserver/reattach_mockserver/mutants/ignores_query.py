"""A server that reads a cursor in Last-Event-ID, and none in the address."""

from starlette.types import Scope

from reattach_mockserver.mutants.wrong import WrongServer, is_attach


class IgnoresQuery(WrongServer):
    """See the module."""

    id = "ignores-query"
    words = "reads a cursor in Last-Event-ID, and none in the address"
    breaks = ("RS-69",)
    found_by, anomaly = ("I5",), "lost"

    async def asked(self, scope: Scope) -> Scope:
        """Take the parameter out of the address."""
        return {**scope, "query_string": b""} if is_attach(scope) else scope
