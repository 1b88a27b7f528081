"""A server that lets a cache keep its streams."""

from collections.abc import Mapping

from reattach_mockserver.mutants.stream import WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    def headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Name an hour."""
        return {**headers, "cache-control": "public, max-age=3600"}


class MayBeCached(WrongServer):
    """See the module."""

    id = "may-be-cached"
    words = "lets a cache keep its streams"
    breaks = ("RS-73",)
    unseen = "there is no cache between client and server in a chaos run"
    streams = _Stream
