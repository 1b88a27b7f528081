"""`Gate`: stands between a client under test and a server, records what passes, and does what a schedule says where it says.

    async with Gate(("127.0.0.1", 8700), schedule, recorder) as gate:
        await play(gate.url)
    assert gate.fired[1] == 1

Loopback only. Faults at the client's and the server's own places are not the gate's; those of the runner at a place on the
wire come to it by `perform`, while the gate holds. Never here: how a fault is done, or where.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Self

from reattach_chaos.gate.actuators import Actuator, LocalActuator
from reattach_chaos.gate.connection import serve
from reattach_chaos.gate.cuts import Cut, Cuts, Exchange
from reattach_chaos.gate.faults.base import READ_BYTES
from reattach_chaos.gate.link import Address, Setting
from reattach_chaos.gate.offsets import Boundary
from reattach_chaos.gate.routes import NATIVE, Dialect
from reattach_chaos.gate.tap import Tap
from reattach_chaos.history import CutMissed, CutPlanned, Other, Recorder
from reattach_chaos.listener import Listener
from reattach_chaos.ports import HOST
from reattach_chaos.schedules import Planned, Schedule, Shape

CLIENT = "client"


class Gate:
    """One gate. Use it as an asynchronous context manager.

    Args:
        upstream: The server's host and port.
        schedule: What is planned.
        recorder: Where to write; stays the caller's.
        actuator: Who ends connections; None: the gate itself.
        others: Further instances of the server: the first is where "other-instance" leads.
        perform: Does a fault that is the runner's (a restart, a clock) while the gate holds at its place.
        dialect: How the server's requests and events are understood.
        shape: The runs that are played, so that records can name the kind of an event.
        prefixes: Fault number → sha256 of the answer's bytes before its place, of a clean pass; see `offsets.py`.
        notes: Whether the places of streams are noted, in `boundaries`.
    """

    def __init__(
        self,
        upstream: Address,
        schedule: Schedule,
        recorder: Recorder,
        actuator: Actuator | None = None,
        *,
        others: Sequence[Address] = (),
        perform: Callable[[Planned, Exchange], Awaitable[None]] | None = None,
        dialect: Dialect = NATIVE,
        shape: Shape | None = None,
        prefixes: Mapping[int, str] | None = None,
        notes: bool = False,
    ) -> None:
        self._recorder = recorder
        self._cuts = Cuts(schedule)
        self._actuator = actuator or LocalActuator()
        self._shape = shape
        self._prefixes = prefixes or {}
        self.instances: list[Address] = [upstream, *others]
        """Where the server is; a new address is used from the next connection on."""
        self.boundaries: list[Boundary] = []
        """The places of all streams that passed, with `notes`."""
        self._setting = Setting(
            self._cuts,
            self._actuator,
            dialect,
            self.instances,
            perform,
            self._shut,
            self.boundaries if notes else None,
            self._prefixes,
        )
        self._doors: dict[str, Listener] = {}
        self._urls: dict[str, str] = {}
        self._count = 0
        self._reopening: asyncio.Task[None] | None = None
        self.life = 1
        """Which process of the client under test connects from now on; for the records."""

    @property
    def url(self) -> str:
        """Where the client under test finds the server: `http://host:port`."""
        return self._urls[CLIENT]

    def away(self, is_away: bool) -> None:
        """Say that the server is away by plan, or that it is back: who comes meanwhile is turned off, which is no trouble."""
        self._setting.away = is_away

    @property
    def fired(self) -> Counter[int]:
        """How often each fault was done, by its number in the schedule."""
        return self._cuts.fired

    @property
    def troubles(self) -> list[str]:
        """What went wrong with the gate, its actuator or the server's address: none of it is the client's."""
        return [record.facts["message"] for record in self._recorder.history().of(Other) if record.name == "trouble"]

    @property
    def unfired(self) -> list[Cut]:
        """The faults of requests that were not done yet."""
        return [cut for cut in self._cuts.all if not self._cuts.fired[cut.number]]

    def name_runs(self, *runs: str) -> None:
        """Name the session's runs in their order, where they are known before a client asks for them."""
        for run in runs:
            self._cuts.name_run(run)

    async def open(self, who: str) -> str:
        """Open a further door, for a subscriber whom no fault concerns; return its url."""
        self._listen(who)
        return self._urls[who]

    async def __aenter__(self) -> Self:
        """Open the client's door."""
        for cut in self._cuts.all:
            self._recorder.record(self._told(cut))
        self._listen(CLIENT)
        address = await self._actuator.open(self._urls[CLIENT].removeprefix("http://"), self._cuts.next_end())
        self._urls[CLIENT] = f"http://{address}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every door and connection; say which faults were never done."""
        await self._actuator.close()
        if self._reopening is not None:
            self._reopening.cancel()
            await asyncio.wait([self._reopening])
        for door in self._doors.values():
            await door.close()
        for cut in self.unfired:
            if cut.number in self._cuts.missed:
                continue  # said already, and why
            self._recorder.record(CutMissed(cut=cut.number, reason="its place was never reached"))

    def _listen(self, who: str) -> None:
        self._doors[who] = door = Listener(partial(self._serve, who), limit=READ_BYTES)
        door.open()
        self._urls[who] = f"http://{HOST}:{door.port}"

    async def _serve(self, who: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        tap = Tap(self._recorder, self._setting.dialect, who, self.life if who == CLIENT else 1, self._count)
        await serve(self._setting, tap, (reader, writer), planned=who == CLIENT)

    def _shut(self, seconds: float) -> None:
        """Close the client's port, and open it again after so many seconds."""
        self._doors[CLIENT].shut()
        self._reopening = asyncio.create_task(self._reopen(seconds))

    async def _reopen(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._doors[CLIENT].open()

    def _told(self, cut: Cut) -> CutPlanned:
        planned = cut.planned
        position = planned.at
        kind = self._shape.kind(position.run, position.event) if self._shape and position.event else None
        return CutPlanned(
            cut=cut.number,
            fault=planned.fault.value,
            position=position.place.value,
            phase=planned.phase,
            direction=planned.direction,
            event_kind=kind or "",
            sequence=position.event,
            offset=position.offset,
            prefix_sha256=self._prefixes.get(cut.number),
        )
