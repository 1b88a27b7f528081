"""`OwnServer`: a server for one case alone, which may end and come again at the same addresses, with the same log.

All cases share a server otherwise (`server.py`); one that is restarted, or that speaks in another way, would be everybody's.
The nursery forks it, knows it by its process id, and ends it with our connection to it, whatever becomes of us.

Its ports are held by sockets of ours that do not listen: between its death and its return nobody else can be given them.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reattach_chaos.cases.processes.order import Word
from reattach_chaos.cases.processes.process import BornProcess
from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.cases.servers.own_redis import OwnRedis
from reattach_chaos.cases.servers.server_steps import AT, Step
from reattach_chaos.ports import HOST, held
from reattach_chaos.schedules import Fault, Place, Schedule

MODULE = "reattach_chaos.cases.servers.server"
START_S, END_S = 60.0, 30.0


@dataclass(frozen=True, slots=True)
class Making:
    """How a server of one case is made.

    Attributes:
        nursery: Where it is born.
        argv: What the shared server was started with.
        redis: What two instances of one keep their log in.
    """

    nursery: Path
    argv: tuple[str, ...]
    redis: OwnRedis


def needs_own(schedule: Schedule) -> bool:
    """Whether a schedule does to its server, or wants of it, what is nothing for all others."""
    restarts = any(each.fault is Fault.SERVER_RESTART for each in schedule.faults)
    return restarts or speaks_crlf(schedule) or needs_two(schedule)


def needs_two(schedule: Schedule) -> bool:
    """Whether a schedule leads a request to another instance of its server."""
    return any(each.fault is Fault.OTHER_INSTANCE for each in schedule.faults)


def speaks_crlf(schedule: Schedule) -> bool:
    """Whether the server's lines end with two characters: it was asked for, or a fault comes between the two."""
    return schedule.server.get("line_end") == "crlf" or any(
        each.at.place is Place.IN_LINE_END for each in schedule.faults
    )


class OwnServer:
    """A case's server; make it with `begun`."""

    def __init__(self, nursery: Path, argv: Sequence[str], ports: tuple[int, int], stderr: Path) -> None:
        self.url, self.admin_url = (f"http://{HOST}:{port}" for port in ports)
        self._nursery = nursery
        self._argv = [*argv, "--born", "--port", str(ports[0]), "--admin-port", str(ports[1])]
        self._stderr = stderr
        self._process: BornProcess | None = None
        self._watching: asyncio.Task[None] | None = None
        self.steps: dict[int, Step] = {}
        """Where it stands still, by the number of the fault; see `server_steps.py`."""
        self.stands: Callable[[int], None] = lambda cut: None
        """Told when it does."""

    async def start(self) -> None:
        """Start it; it serves then.

        Raises:
            ServerTrouble: It does not.
        """
        self._watching = None  # of the process before: its end is not this one's
        try:
            steps = [word for step in self.steps.values() for word in ("--step", str(step))]
            self._process = await BornProcess.bear(self._nursery, MODULE, [*self._argv, *steps], {}, self._stderr)
            async with asyncio.timeout(START_S):
                stands = await self._until_it_serves(self._process)
        except (OSError, TimeoutError) as error:
            raise ServerTrouble(f"the case's server did not start: {type(error).__name__}: {error}") from error
        self._watching = asyncio.create_task(self._watch(self._process))
        for cut in stands:
            self.stands(cut)

    async def _until_it_serves(self, process: BornProcess) -> list[int]:
        """Return where it stands still already: it goes on with its runs before anybody can ask for them."""
        stands: list[int] = []
        while (line := await process.line()) is not None:
            told = _told(line)
            if told.get("kind") == "serving":
                return stands
            if (cut := self._reached(told)) is not None:
                stands.append(cut)
        raise ServerTrouble("the case's server did not start: it ended")

    async def end(self, word: Word) -> None:
        """End it with SIGTERM or SIGKILL, and wait for that.

        Raises:
            ServerTrouble: It does not end.
        """
        process, self._process = self._process, None
        if process is None:
            return
        process.signal(word)
        try:
            await asyncio.wait_for(self._watching or process.code(), END_S)
        except TimeoutError as error:
            raise ServerTrouble(f"the case's server did not end on {word} within {END_S:g} s") from error
        finally:
            process.close()

    async def _watch(self, process: BornProcess) -> None:
        """Hear it out: it says where it stands still."""
        while (line := await process.line()) is not None:
            if (cut := self._reached(_told(line))) is not None:
                self.stands(cut)

    def _reached(self, told: Mapping[str, Any]) -> int | None:
        """Return the number of the fault whose step it says that it stands at; None: it says nothing new."""
        cut = told.get("cut")
        if told.get("kind") == AT and isinstance(cut, int) and self.steps.pop(cut, None) is not None:
            return cut
        return None


def _told(line: str) -> dict[str, Any]:
    """Return what a line says; what is no JSON object, a warning on a wrong stream perhaps, says nothing to us."""
    try:
        told = json.loads(line)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


@asynccontextmanager
async def begun(
    making: Making, schedule: Schedule, folder: Path, steps: Iterable[Step] = (), *, log: str = "", name: str = "server"
) -> AsyncIterator[OwnServer]:
    """Start a server for a schedule's case, and end it.

    Args:
        making: How.
        schedule: Of the case.
        folder: For its log.
        steps: Where it stands still.
        log: A database that instances share; "": a file of its own.
        name: Of its own stderr file.

    Raises:
        ServerTrouble: It does not start.
    """
    words = ["--line-end", "crlf"] if speaks_crlf(schedule) else []
    argv = [*making.argv, "--log", log or str(folder / "log.db"), *words]
    async with AsyncExitStack() as stack:
        kept = [stack.enter_context(held()) for _ in range(2)]
        ports = (kept[0].getsockname()[1], kept[1].getsockname()[1])
        server = OwnServer(making.nursery, argv, ports, folder / f"{name}.stderr")
        server.steps = {step.cut: step for step in steps}
        stack.push_async_callback(server.end, "kill")
        await server.start()
        yield server
