"""What a fault is told and may do. One fault, one file, one function `strike(blow)`.

A fault says `blow.tell()` just before it acts: that is its record. It raises `Over` where the connection ends with it, and
`Impossible`, before it has told, where it cannot be done: then the case is inconclusive, never green.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from reattach_chaos.gate.cuts import Exchange
from reattach_chaos.schedules import Planned
from reattach_chaos.schedules.settings import setting

if TYPE_CHECKING:
    from reattach_chaos.gate.link import Link

READ_BYTES = 256 * 1024


class Over(Exception):
    """Nothing more is sent on this connection: the way out of a half-parsed read."""


class Impossible(Exception):
    """The fault cannot be done here; the message says why."""


class Pace(Protocol):
    """How fast bytes go on to the client."""

    read_bytes: int
    """So many are taken from the server at a time."""

    def pieces(self, data: bytes) -> Iterator[tuple[float, bytes]]:
        """Yield (seconds to wait first, bytes to send)."""
        ...


@dataclass(frozen=True, slots=True)
class Blow:
    """One fault at its place: the connection is held, all before the place has come.

    Attributes:
        link: The connection.
        planned: The fault.
        exchange: The request that it is planned on.
        tell: Records that it fires.
    """

    link: Link
    planned: Planned
    exchange: Exchange
    tell: Callable[[], None]

    def setting(self, name: str) -> float:
        """Return a setting of the fault, a number."""
        return float(setting(self.planned, name))

    async def hang_up(self, by: Literal["gate", "server"] = "gate") -> None:
        """End the connection with a FIN, and the server's side.

        Args:
            by: Who is said to have done it.

        Raises:
            Over: Always.
        """
        from reattach_chaos.gate import sockets

        self.link.silent = True
        self.link.end(by, "fin")
        sockets.fin(self.link.to_client)
        self.link.drop_server()
        raise Over
