"""A server that answers with the first run of a key, whatever the body."""

from starlette.types import Message, Receive, Scope

from reattach_mockserver.mutants.wrong import WrongServer
from reattach_mockserver.settings import Settings


class IgnoresBody(WrongServer):
    """See the module."""

    id = "ignores-body"
    words = "answers with the first run of a key, whatever the body"
    breaks = ("RS-43",)
    unseen = "no client under test sends one key with two bodies"

    def given(self, settings: Settings) -> Settings:
        """Remember the first body of each key."""
        self._bodies: dict[bytes, bytes] = {}
        return settings

    async def heard(self, scope: Scope, receive: Receive) -> Receive:
        """Hear the first body again."""
        key = dict(scope["headers"]).get(b"idempotency-key")
        if key is None:
            return receive

        async def first() -> Message:
            message = await receive()
            if message["type"] == "http.request" and message.get("body"):
                message = {**message, "body": self._bodies.setdefault(key, message["body"])}
            return message

        return first
