"""The stage: starts server, gate and followers, lets them play, reads what is left, and ends every process that it started.

Nothing here compares. Every wait has an end; a child that does not come to its own is killed by its process id and named. The
folder holds all that can be looked at afterwards; keeping or removing it is the caller's.
"""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from reattach_chaos.demo.cast import cast, gate_plan
from reattach_chaos.demo.child import Child, ChildFailed
from reattach_chaos.demo.cuts import Cuts
from reattach_chaos.demo.judge import SETTLING
from reattach_chaos.demo.performer import Performer
from reattach_chaos.demo.server_log import Ledger, LogUnreadable, read_ledger, read_log, read_status
from reattach_chaos.demo.showing import Logged, Showing
from reattach_chaos.gate.history import HistoryTail

HEARTBEAT_MS = 100  # a stall costs three
START_S = 30.0  # an interpreter on a machine under load
TICK_S = 0.1
CLIENTS = {"reattach": "reattach_chaos.demo.follower", "naive": "reattach_chaos.demo.naive"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What is played: a scenario or a recording in a file, with at least `events` events (all, of a scenario)."""

    kind: Literal["scenario", "recording"]
    path: Path
    events: int


@dataclass(slots=True, kw_only=True)
class Played:
    """All that was seen. `troubles`: what went wrong with the stage itself, in words."""

    log: list[Logged] = field(default_factory=list)
    showings: list[Showing] = field(default_factory=list)
    cuts: Cuts = field(default_factory=Cuts)
    ledger: Ledger = field(default_factory=lambda: Ledger(0, ()))
    run_id: str = ""
    kills_planned: int = 0
    seconds: float = 0.0
    troubles: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """How often a client was killed."""
        return sum(showing.kills for showing in self.showings)


class Stage:
    """One demo.

    Args:
        piece: What is played.
        client: "reattach" or "naive".
        seed: Decides where clients are killed.
        folder: An empty folder.
        watch: Called ten times a second with what was seen so far.
    """

    def __init__(self, piece: Piece, *, client: str, seed: int, folder: Path, watch: Callable[[Played], None]) -> None:
        self._piece = piece
        self._client = client
        self._seed = seed
        self._folder = folder
        self._watch = watch
        self._children: list[Child] = []
        self._nursery = folder / "nursery"
        self._tail = HistoryTail(folder / "history.jsonl")
        self.played = Played()
        self.limit = 60.0 + piece.events / 4  # far above what it takes, also on a busy machine
        self.server_url = ""

    async def play(self, ready: Callable[[str], None]) -> Played:
        """Play it; return what was seen. `ready` is told the server's address.

        Raises:
            ChildFailed: Server or gate did not start, or no run came to be.
            LogUnreadable: The server's log cannot be had.
        """
        begun = time.monotonic()
        parts = cast(self._piece.events, self._seed, naive=self._client == "naive")
        module = CLIENTS[self._client]
        performers = [Performer(part, module, nursery=self._nursery, folder=self._folder) for part in parts]
        self.played.showings = [performer.showing for performer in performers]
        self.played.kills_planned = sum(len(part.holds) for part in parts)
        try:
            _, server = await asyncio.gather(self._start_nursery(), self._start_server())
            ready(self.server_url)
            gate, lanes = await self._start_gate()
            await self._perform(performers, lanes)
            await gate.end()
            self.played.cuts.take(self._tail.read())
            if self.played.run_id:
                self.played.log = await self._read_log()
            await server.end()
            self.played.ledger = read_ledger(self._folder / "server.db")
        finally:
            # The nursery last: while it lives, no follower's process id can be another process's.
            await asyncio.gather(*(child.end() for each in performers for child in each.children))
            await asyncio.gather(*(child.end() for child in self._children))
        self.played.seconds = time.monotonic() - begun
        return self.played

    async def _start_nursery(self) -> None:
        nursery = await Child.spawn("nursery", "reattach_chaos.demo.nursery", str(self._nursery), folder=self._folder)
        self._children.append(nursery)
        await nursery.first_line(START_S)

    async def _start_server(self) -> Child:
        server = await Child.spawn(
            "server", "reattach_chaos.demo.server",
            "--log", str(self._folder / "server.db"), "--heartbeat-ms", str(HEARTBEAT_MS),
            f"--{self._piece.kind}", str(self._piece.path),
            folder=self._folder,
        )  # fmt: skip
        self._children.append(server)
        self.server_url = (await server.first_line(START_S))["url"]
        return server

    async def _start_gate(self) -> tuple[Child, dict[str, int]]:
        plan = self._folder / "plan.json"
        plan.write_text(json.dumps(gate_plan(self._seed), indent=1), encoding="utf-8")
        gate = await Child.spawn(
            "gate", "reattach_chaos.gate",
            "--upstream", self.server_url.removeprefix("http://"), "--plan", str(plan),
            "--history", str(self._folder / "history.jsonl"),
            folder=self._folder,
        )  # fmt: skip
        self._children.append(gate)
        return gate, (await gate.first_line(START_S))["lanes"]

    async def _perform(self, performers: list[Performer], lanes: dict[str, int]) -> None:
        """Let all followers play to their ends, or to the limit."""
        starter, *others = performers
        loop = asyncio.get_running_loop()
        orders: list[asyncio.Future[dict[str, Any]]] = [loop.create_future() for _ in performers]
        playing = [asyncio.create_task(each.perform(order)) for each, order in zip(performers, orders, strict=True)]
        watching = asyncio.create_task(self._keep_watching())
        key = f"demo-{self._seed}"
        orders[0].set_result({"url": _url(lanes, starter), "key": key, "input": "Play the demonstration"})
        try:
            async with asyncio.timeout(self.limit):
                self.played.run_id = await starter.run_id or ""
                if not self.played.run_id:
                    raise ChildFailed(f"no run came to be: {starter.showing.trouble}")
                for each, order in zip(others, orders[1:], strict=True):
                    order.set_result({"url": _url(lanes, each), "run": self.played.run_id})
                await asyncio.gather(*playing)
        except TimeoutError:
            for each, task in zip(performers, playing, strict=True):
                if not task.done() or task.cancelled():
                    each.stop(self.limit)
                    self.played.troubles.append(f"{each.part.who} follower: {each.showing.trouble}")
        finally:
            watching.cancel()
            for task in playing:
                task.cancel()
            await asyncio.gather(watching, *playing, return_exceptions=True)

    async def _keep_watching(self) -> None:
        while True:
            self.played.cuts.take(self._tail.read())
            self._watch(self.played)
            await asyncio.sleep(TICK_S)

    async def _read_log(self) -> list[Logged]:
        """Read the run's log when it has settled; a client that gave up may have left before."""
        deadline = time.monotonic() + self.limit
        while await asyncio.to_thread(read_status, self.server_url, self.played.run_id) not in SETTLING.values():
            if time.monotonic() > deadline:
                raise LogUnreadable(f"the run did not settle within {self.limit:.0f} s")
            await asyncio.sleep(TICK_S)
        return await asyncio.to_thread(read_log, self.server_url, self.played.run_id)


def _url(lanes: dict[str, int], performer: Performer) -> str:
    return f"http://127.0.0.1:{lanes[performer.part.lane]}"
