"""A server that sends nothing while nothing happens."""

from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def beat(self, text: bytes) -> None:
        """Keep it."""


class HasNoHeartbeat(WrongServer):
    """See the module."""

    id = "has-no-heartbeat"
    words = "sends nothing while nothing happens"
    breaks = ("RS-76",)
    unseen = "a machine that is paused for a moment is as silent, so no law holds a server to its heartbeat"
    streams = _Stream
