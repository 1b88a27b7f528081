"""A server that answers a resume with 200 and an empty stream."""

from reattach_mockserver.mutants.stream import Ended, WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    async def take(self, body: bytes, *, more: bool) -> None:
        """Send nothing."""
        if self.after is not None:
            raise Ended
        await super().take(body, more=more)


class ResumesWithNothing(WrongServer):
    """See the module."""

    id = "resumes-with-nothing"
    words = "answers a resume with 200 and an empty stream"
    breaks = ("RS-81", "RS-49")
    found_by = ("I13",)
    anomaly = "hang"
    streams = _Stream
