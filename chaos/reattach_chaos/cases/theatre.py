"""`theatre`: all that cases are played with, built up and taken down: the server, the nursery, the clean pass, the hands.

The server is ours, in a process of its own, or any that is named. Everything that was started here has ended when it is left, also
after a Ctrl-C.
"""

import asyncio
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from reattach_chaos.cases.backend import Backend
from reattach_chaos.cases.client import Client, CommandClient, Mode, MutantClient, OwnClient
from reattach_chaos.cases.exposures import SKIPPING
from reattach_chaos.cases.player import Player, Stage
from reattach_chaos.cases.processes.workers import Workers
from reattach_chaos.cases.servers.control import Control
from reattach_chaos.cases.servers.own_redis import OwnRedis
from reattach_chaos.cases.servers.own_server import MODULE as SERVER
from reattach_chaos.cases.servers.own_server import Making
from reattach_chaos.cases.session import DEFAULT, Session, clean_pass, input_of
from reattach_chaos.cases.simulated import SimulatedPlayer, simulation
from reattach_chaos.cases.terms import HEARTBEAT_MS, Terms
from reattach_chaos.demo.child import Child
from reattach_chaos.toxiproxy.control.backends import BackendName
from reattach_mockserver.scenarios.parse import load_script
from reattach_mockserver.scenarios.ready import READY

START_S = 60.0
CALL_S = 30.0
FOREIGN_HEARTBEAT_MS = 15_000.0
FOREIGN_INPUT = "Count slowly from one to twenty."


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What is to be put on.

    Attributes:
        target: A server that runs; "": ours.
        wrong: A mutant's name in place of our right server; "" for none.
        client: The command under test; "": our own.
        mutant: A mutant's name in its place, "" for none.
        mode: Whether the client starts runs itself.
        scenario: A ready scenario's name or a file, in place of the default session; "" for that.
        script: A scenario itself, as its file has it in JSON, in place of both; None for none.
        timeout_s: For a case's client.
        heartbeat_ms: What a server of ours keeps.
        backend: Which Toxiproxy ends connections.
        toxiproxy: The address of one that runs; "" for none.
        seed: Of the run.
        simulated: In memory instead of on sockets, with our client and a server of the simulation.
    """

    target: str = ""
    wrong: str = ""
    client: str = ""
    mutant: str = ""
    mode: Mode = "follow"
    scenario: str = ""
    script: Mapping[str, Any] | None = None
    timeout_s: float = 30.0
    heartbeat_ms: float = HEARTBEAT_MS
    backend: BackendName = "auto"
    toxiproxy: str = ""
    seed: int = 0
    simulated: bool = False

    @property
    def skips(self) -> bool:
        """Whether the server is known to leave out events, and a client is judged by what it makes of that."""
        return bool(self.mutant) and self.wrong == SKIPPING


@dataclass(frozen=True, slots=True)
class Theatre:
    """What cases are played with."""

    player: Player | SimulatedPlayer
    session: Session
    client: Client
    server_url: str
    backend: str


@asynccontextmanager
async def theatre(bill: Bill) -> AsyncIterator[Theatre]:
    """Build it up, and take it down.

    Raises:
        ChildFailed: The server or the nursery did not start.
        ServerTrouble: The session could not be played without faults.
        InfrastructureError: The proxy cannot be had.
        ScenarioError: The script is none.
    """
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="reattach-chaos-"))
    async with AsyncExitStack() as stack:
        if bill.simulated:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            nobody = OwnClient(folder, Workers(folder, folder))  # by its name only: the simulation has it inside
            yield Theatre(await stack.enter_async_context(simulation()), Session(runs=()), nobody, "", "simulation")
            return
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if bill.script is not None:
            bill = replace(bill, scenario=str(await asyncio.to_thread(_written, bill.script, folder)))
        nursery = folder / "nursery"
        backend = await stack.enter_async_context(Backend(bill.backend, bill.toxiproxy, bill.seed))
        starting = [_server(bill, folder, stack)]
        if not (bill.client and bill.target):
            starting.append(_nursery(nursery, folder, stack))
        url, admin_url = (await asyncio.gather(*starting))[0]
        warden = await _warden(folder, stack) if bill.client else None
        http = await stack.enter_async_context(
            httpx.AsyncClient(timeout=CALL_S, trust_env=False, limits=httpx.Limits(max_connections=100))
        )
        own = not bill.target
        given = os.environ.get("REATTACH_TOKEN", "")
        control = Control(http, url, secrets.token_hex(16) if own else given, admin_url)
        heartbeat = bill.heartbeat_ms if own else await control.heartbeat_ms() or FOREIGN_HEARTBEAT_MS
        workers = Workers(nursery, folder)
        stack.callback(workers.close)
        client = _client(bill, nursery, workers, warden)
        session = await clean_pass(control, _inputs(bill), f"clean-{secrets.token_hex(4)}")
        redis = OwnRedis(nursery, folder)
        stack.push_async_callback(redis.end)
        stage = Stage(
            http=http,
            url=url,
            admin_url=admin_url,
            session=session,
            client=client,
            mode=bill.mode,
            terms=Terms(timeout_s=bill.timeout_s, heartbeat_ms=heartbeat, marks=client.marks, backoff=client.backoff),
            token=lambda: secrets.token_hex(16) if own else given,
            actuator=backend.actuator,
            making=Making(nursery, tuple(_server_words(bill)), redis) if own else None,
            skips=bill.skips,
        )
        yield Theatre(Player(stage), session, client, url, backend.name)


async def _server(bill: Bill, folder: Path, stack: AsyncExitStack) -> tuple[str, str | None]:
    if bill.target:
        return bill.target, None
    server = await Child.spawn("server", SERVER, *_server_words(bill), folder=folder)
    stack.push_async_callback(server.end)
    told = await server.first_line(START_S)
    return str(told["url"]), str(told["admin_url"])


def _server_words(bill: Bill) -> list[str]:
    files = [bill.scenario] if bill.scenario and bill.scenario not in READY else []
    words = ["--heartbeat-ms", f"{bill.heartbeat_ms:.0f}", "--seed", str(bill.seed), "--default", _names(bill)[0]]
    return [*words, *(["--mutant", bill.wrong] if bill.wrong else []), *files]


def _written(script: Mapping[str, Any], folder: Path) -> Path:
    """Return the file of a script; one without a name is "scenario"."""
    path = folder / "scenario.json"
    path.write_text(json.dumps(script), encoding="utf-8")
    return path


async def _nursery(path: Path, folder: Path, stack: AsyncExitStack) -> tuple[str, str | None]:
    child = await Child.spawn("nursery", "reattach_chaos.cases.processes.nursery", str(path), folder=folder)
    stack.push_async_callback(child.end)
    await child.first_line(START_S)
    return "", None


async def _warden(folder: Path, stack: AsyncExitStack) -> Child:
    child = await Child.spawn("warden", "reattach_chaos.cases.processes.warden", folder=folder)
    stack.push_async_callback(child.end)
    await child.first_line(START_S)
    return child


def _client(bill: Bill, nursery: Path, workers: Workers, warden: Child | None) -> Client:
    if warden is not None:
        return CommandClient(bill.client, bill.mode, born=lambda pid: warden.tell({"ward": pid}))
    return MutantClient(bill.mutant, nursery, bill.mode) if bill.mutant else OwnClient(nursery, workers)


def _names(bill: Bill) -> tuple[str, ...]:
    """Return the names of the scenarios that are played."""
    if not bill.scenario:
        return DEFAULT
    return (bill.scenario,) if bill.scenario in READY else (load_script(bill.scenario).name,)


def _inputs(bill: Bill) -> list[Any]:
    if bill.target and not bill.scenario:
        return [FOREIGN_INPUT]
    if bill.target:
        return [input_of(bill.scenario)]
    return [input_of(name) for name in _names(bill)]
