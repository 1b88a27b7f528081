"""`WrongStream`: one stream of a wrong server. What the right server sends comes here by blocks; a mutant overrides a method.

It decides nothing by itself: unchanged, it sends what comes. Never here: a request, a run's record, a log.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from starlette.types import Send

from reattach_mockserver.mutants.block import Block

if TYPE_CHECKING:
    from reattach_mockserver.mutants.wrong import WrongServer

_BLOCK = re.compile(rb".*?(?:\n\n|\Z)", re.DOTALL)


class Ended(BaseException):
    """The stream ends where the right server would have gone on. No `Exception`: nobody between is to take it for a failure.

    Args:
        whole: Ended as an answer that is whole; else the connection is broken off.
    """

    def __init__(self, *, whole: bool = True) -> None:
        super().__init__()
        self.whole = whole


class WrongStream:
    """See the module.

    Args:
        server: Whose it is.
        run_id: What is read; "" where that is not known.
        after: The sequence that was asked after; None where no cursor was sent.
        send: The connection.
    """

    def __init__(self, server: "WrongServer", run_id: str, after: int | None, send: Send) -> None:
        self.server = server
        self.run_id = run_id
        self.after = after
        self._send = send

    # What a mutant overrides

    def headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the headers of the answer; names in lower case."""
        return headers

    async def event(self, block: Block) -> None:
        """Send an event."""
        await self.put(block)

    async def control(self, block: Block) -> None:
        """Send a control frame."""
        await self.put(block)

    async def beat(self, text: bytes) -> None:
        """Send a heartbeat."""
        await self.put(text)

    async def end(self) -> None:
        """End the answer."""
        await self.close()

    # What it does it with

    async def put(self, piece: Block | bytes) -> None:
        """Send bytes."""
        body = piece if isinstance(piece, bytes) else piece.encoded()
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def close(self) -> None:
        """End the answer as one that is whole."""
        await self._send({"type": "http.response.body", "body": b""})

    async def take(self, body: bytes, *, more: bool) -> None:
        """Take what the right server sends."""
        for text in _BLOCK.findall(body):
            if text.startswith(b":"):
                await self.beat(text)
            elif text:
                block = Block.of(text)
                await (self.event(block) if block.is_event else self.control(block))
        if not more:
            await self.end()
