"""`Link`: one connection in the gate's hands: its two ends, what is silent, and how a fault comes to it.

`upward.py` and `downward.py` relay and find the places; the faults in `faults/` do what they do through this. Nothing here parses.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from reattach_chaos.gate import sockets
from reattach_chaos.gate.actuators import Actuator
from reattach_chaos.gate.around import Around
from reattach_chaos.gate.cuts import Cut, Cuts, Exchange
from reattach_chaos.gate.faults import strike
from reattach_chaos.gate.faults.base import READ_BYTES, Blow, Impossible, Over, Pace
from reattach_chaos.gate.frames import FrameReader
from reattach_chaos.gate.framing import Framing
from reattach_chaos.gate.offsets import Boundary
from reattach_chaos.gate.rewriting import Rewriter
from reattach_chaos.gate.routes import Dialect
from reattach_chaos.gate.tap import Tap
from reattach_chaos.schedules import Place, Planned
from reattach_chaos.schedules.schedule import Direction

CONNECT_S = 5.0  # loopback: a server that does not accept within this is gone
IDLE_S = 0.05  # so long nothing passes before a cut "idle between events"

Ends: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Address: TypeAlias = tuple[str, int]
Side: TypeAlias = Literal["client", "server", "gate"]
How: TypeAlias = Literal["fin", "rst", "silence"]


def _ready() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass(slots=True)
class Setting:
    """What all connections of a gate share.

    Attributes:
        cuts: What is planned.
        actuator: Who ends connections.
        dialect: The server's.
        instances: Where the server is; the first is the usual one.
        names: Of the instances, for the records.
        perform: Does a fault that is the runner's; None: such a fault is missed.
        ready: Whether new connections are relayed: not while the actuator is at work.
        boundaries: Where the places of streams are noted; None: nowhere.
        prefixes: Fault number → the digest that the answer's bytes before its place must have.
        shut: Closes the gate's port for so many seconds.
        away: The server is away by plan.
    """

    cuts: Cuts
    actuator: Actuator
    dialect: Dialect
    instances: Sequence[Address]
    perform: Callable[[Planned, Exchange], Awaitable[None]] | None
    shut: Callable[[float], None]
    boundaries: list[Boundary] | None = None
    prefixes: Mapping[int, str] = field(default_factory=dict)
    ready: asyncio.Event = field(default_factory=_ready)
    away: bool = False


class Link:
    """One connection.

    Args:
        setting: The gate's.
        tap: Records this connection.
        client: The accepted side.
        relay_down: Relays the server's direction; begun anew with each server connection.
        planned: Whether the schedule concerns it: not one of a bystander.
    """

    def __init__(
        self,
        setting: Setting,
        tap: Tap,
        client: Ends,
        relay_down: Callable[["Link"], Coroutine[None, None, None]],
        *,
        planned: bool,
    ) -> None:
        self._relay_down = relay_down
        self.setting = setting
        self.tap = tap
        self.planned = planned
        self.from_client, self.to_client = client
        self.from_server: asyncio.StreamReader | None = None
        self.to_server: asyncio.StreamWriter | None = None
        self.up = Framing(responses=False)
        self.down = Framing(responses=True)
        self.waiting: deque[Exchange] = deque()
        self.wanted = 0
        """The instance that the request in hand goes to."""
        self._instance = 0
        self.downward: asyncio.Task[None] | None = None
        self.pace: Pace | None = None
        self._pace_up: Pace | None = None
        self.silent = False
        """Nothing more goes to the client."""
        self.held_up = False
        """Nothing more goes to the server; what the client sends is not even read."""
        self.over = asyncio.Event()
        self.firing = False
        self.ended: tuple[Side, How] | None = None
        self.socket: FrameReader | None = None
        """Reads the server's frames, once WebSocket is spoken."""
        self.asked: Exchange | None = None
        """What was asked for on it."""
        self.rewriter: Rewriter | None = None
        """Frames the answer in hand anew, where a fault needs it."""

    async def connect(self) -> None:
        """Open the server's side to the instance that is wanted, unless it is open.

        Raises:
            Over: There is no server; the client's connection is reset, as the server's would be.
        """
        if self.to_server is not None and self._instance == self.wanted:
            return
        self.drop_server()
        self._instance = self.wanted
        try:
            async with asyncio.timeout(CONNECT_S):
                ends = await asyncio.open_connection(*self.setting.instances[self.wanted], limit=READ_BYTES)
        except (OSError, TimeoutError) as error:
            if not self.setting.away:
                self.tap.trouble(f"no server: {type(error).__name__}: {error}")
            self.end("server", "rst")
            sockets.rst(self.to_client)
            raise Over from error
        self.from_server, self.to_server = ends
        self.down = Framing(responses=True)
        self.downward = asyncio.create_task(self._relay_down(self))

    def begin(self) -> None:
        """Begin a request: what an earlier one's faults set is over."""
        self.pace, self._pace_up, self.wanted = None, None, 0

    def set_pace(self, pace: Pace, direction: Direction) -> None:
        """Let the request in hand and its answer go at this pace, in one direction or in both."""
        if direction != "upstream":
            self.pace = pace
        if direction != "downstream":
            self._pace_up = pace

    async def send_up(self, data: bytes) -> None:
        """Send bytes to the server."""
        if self.to_server is not None:
            await _send(self.to_server, data, self._pace_up)

    async def send_down(self, data: bytes) -> None:
        """Send bytes to the client, at the pace of this connection. To a silent one nothing is sent."""
        if not self.silent:
            await _send(self.to_client, data, self.pace)

    async def fire(self, cut: Cut, exchange: Exchange, around: Around) -> None:
        """Do a fault here and now: all that was sent has come before, nothing is sent meanwhile.

        Raises:
            Over: The fault ends the connection, or the client had left before.
        """
        prefix = self.setting.prefixes.get(cut.number)
        if prefix is not None and around.prefix_sha256 != prefix:
            self._missed(cut, "the bytes before it are not those of the clean pass")
            return
        self.firing = True
        try:
            came = not self.client_gone and await sockets.settled(self.to_client)
            if came and cut.planned.at.place is Place.IDLE:
                await asyncio.sleep(IDLE_S)
                came = not self.client_gone
            if not came:
                self._missed(cut, "the client had left before")
                raise Over
            if self.to_server is not None:
                await sockets.settled(self.to_server)
            try:
                await strike(Blow(self, cut.planned, exchange, lambda: self._fired(cut, exchange, around)))
            except Impossible as why:
                self._missed(cut, str(why))
        finally:
            self.firing = False

    def _fired(self, cut: Cut, exchange: Exchange, around: Around) -> None:
        self.setting.cuts.fired[cut.number] += 1
        self.tap.fired(cut, exchange, around)

    def _missed(self, cut: Cut, reason: str) -> None:
        self.setting.cuts.missed.add(cut.number)
        self.tap.missed(cut, reason)

    @property
    def client_gone(self) -> bool:
        """Whether the client has closed."""
        return self.from_client.at_eof() or self.to_client.transport.is_closing()

    def drop_server(self) -> None:
        """Close the server's side, and read no more of it."""
        if self.to_server is not None:
            self.to_server.close()
            self.to_server = None
        if self.downward is not None and self.downward is not asyncio.current_task():
            self.downward.cancel()

    def end(self, by: Side, how: How) -> None:
        """Say who ended the connection, and how; the first word counts."""
        if self.ended is None:
            self.ended = (by, how)
            self.tap.close(by, how)


async def _send(writer: asyncio.StreamWriter, data: bytes, pace: Pace | None) -> None:
    if not data:
        return
    with contextlib.suppress(OSError):
        for wait, piece in pace.pieces(data) if pace is not None else ((0.0, data),):
            if wait:
                await asyncio.sleep(wait)
            writer.write(piece)
            await writer.drain()
