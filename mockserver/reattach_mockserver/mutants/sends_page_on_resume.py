"""A server that answers a resume with a web page."""

from collections.abc import Mapping

from reattach_mockserver.mutants.stream import Ended, WrongStream
from reattach_mockserver.mutants.wrong import WrongServer


class _Stream(WrongStream):
    """Its streams."""

    def headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Say that it is a page."""
        return headers if self.after is None else {**headers, "content-type": "text/html"}

    async def take(self, body: bytes, *, more: bool) -> None:
        """Send the page."""
        if self.after is None:
            await super().take(body, more=more)
        else:
            await self.put(b"<!doctype html><title>Welcome</title>")
            raise Ended


class SendsPageOnResume(WrongServer):
    """See the module."""

    id = "sends-page-on-resume"
    words = "answers a resume with a web page"
    breaks = ("RS-68",)
    found_by = ("I15",)
    anomaly = "gave up"
    streams = _Stream
