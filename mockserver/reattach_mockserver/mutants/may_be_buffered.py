"""A server that asks a proxy for no buffering on the first stream only."""

from collections.abc import Mapping

from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    def headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Forget it on a resume."""
        return (
            {**headers, "cache-control": "no-store", "x-accel-buffering": "yes"} if self.after is not None else headers
        )


class MayBeBuffered(WrongServer):
    """See the module."""

    id = "may-be-buffered"
    words = "asks a proxy for no buffering on the first stream only"
    breaks = ("RS-74",)
    unseen = "there is no buffering proxy between client and server in a chaos run"
    streams = _Stream
