"""A connection: a client's socket, a server's socket and the two links between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from reattach_chaos.toxiproxy.embedded.end import End
from reattach_chaos.toxiproxy.embedded.link import Link
from reattach_chaos.toxiproxy.embedded.stage import Fitted

DIAL_S = 10.0  # seconds to reach the upstream


class Connection:
    """One accepted connection, until both of its sockets are gone.

    Args:
        upstream: Host and port; None where the address is none: the client is then closed at once.
        toxics: The proxy's, as they are when the upstream has answered.
        chance: The proxy's random numbers.
        gone: Called once, at the end.
    """

    def __init__(
        self,
        upstream: tuple[str, int] | None,
        toxics: list[Fitted],
        chance: Random,
        gone: Callable[[Connection], None],
    ) -> None:
        self._upstream = upstream
        self._toxics = toxics
        self._chance = chance
        self._gone = gone
        self._dialling: asyncio.Task[None] | None = None
        self._aborted = False
        self.client = End(self)
        self.server = End(self)
        self.up: Link | None = None
        self.down: Link | None = None
        self.closed = asyncio.Event()

    def end_made(self, end: End) -> None:
        """Dial, now that the client is there."""
        if self._aborted:
            # Accepted, or dialled, in the very turn of the loop in which the proxy was disabled.
            end.close()
        elif end is self.client:
            # A task of its own: one slow dial holds up no other connection (in Toxiproxy it does).
            self._dialling = asyncio.create_task(self._dial())

    async def _dial(self) -> None:
        try:
            if self._upstream is None:
                raise OSError("no address")
            async with asyncio.timeout(DIAL_S):
                await asyncio.get_running_loop().create_connection(lambda: self.server, *self._upstream)
        except (OSError, ValueError):  # ValueError: a name that no resolver would take; a time limit is an OSError
            self.abort()
            return
        if any(each.toxic.resets for each in self._toxics):
            # For the whole connection and both sockets, whatever the toxicity (Shopify/toxiproxy#603).
            self.client.reset_at_close()
            self.server.reset_at_close()
        self.up = Link(self.client, self.server, of_stream(self._toxics, "upstream"), self._chance)
        self.down = Link(self.server, self.client, of_stream(self._toxics, "downstream"), self._chance)
        self.client.out = self.server.into = self.up
        self.server.out = self.client.into = self.down
        for link in (self.up, self.down):
            link.advance()

    def end_lost(self) -> None:
        """End when the second socket is gone, or the client's before there was a second."""
        if self.client.lost and (self.up is None or self.server.lost):
            self._end()

    def link(self, stream: str) -> Link | None:
        """Return the direction's link; None before the upstream has answered."""
        return self.up if stream.lower() == "upstream" else self.down

    def abort(self) -> None:
        """Close both sockets at once, with FIN, or RST where the connection is one that resets."""
        for link in (self.up, self.down):
            if link is not None:
                link.stop()
        self._aborted = True
        if self._dialling is not None and self._dialling is not asyncio.current_task():
            self._dialling.cancel()
        self.client.close()
        self.server.close()

    def _end(self) -> None:
        for link in (self.up, self.down):
            if link is not None:
                link.stop()
        if not self.closed.is_set():
            self.closed.set()
            self._gone(self)


def of_stream(toxics: list[Fitted], stream: str) -> list[Fitted]:
    """Return the toxics of one direction, in their order."""
    return [each for each in toxics if each.stream.lower() == stream]
