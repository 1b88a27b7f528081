"""A process that lives an agent's run, and dies by its own hand at the point that it is told.

Run as a program it is a nursery: it has imported everything, and for each line on its input (a `Life`, as JSON) it forks a
child that opens an engine on the log, goes on with the run, and writes down what a client sees. So a death and a rebirth cost
a fork, not an interpreter. It answers each line with how the child ended.

What tools do outside of the log is done to files here, which outlive every child: `mails` (an authority that knows an
operation by its id and does it once), `launches` (one that does whatever it is told, each time).
"""

import asyncio
import importlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from engines_stage import work_on
from reattach_mockserver.agent.loop import AgentWork
from reattach_mockserver.agent.model import Called, Said
from reattach_mockserver.agent.scripted import ScriptedModel
from reattach_mockserver.agent.tool import Tool, ToolUse, always
from reattach_mockserver.engine.draft import NewRun
from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.event import SETTLED
from reattach_mockserver.hooks import Hooks
from reattach_mockserver.logs.base import RunRecord
from reattach_mockserver.logs.redis.log import RedisLog
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.settings import Settings

PATIENCE = 60.0  # seconds; only a broken engine takes longer
LEASE = 1.0  # seconds; of a process that shares its log

TURNS = [
    [Said("I look, charge and mail."), Called("look"), Called("charge", {"cents": 9}), Called("mail", {"to": "ada"})],
    [Called("launch", {"to": "moon"}), Called("refund", {"cents": 9})],
    [Said("All done.")],
]
"""A turn of calls side by side; one with a call that cannot be repeated and one that a person is to approve; the end."""


@dataclass(frozen=True, slots=True)
class On:
    """What plays the agent: our own loop, or the engine of this name (`engines_stage.py`), whose server is at an address."""

    engine: str = "own"
    address: str = ""


OWN = On()


@dataclass(frozen=True, slots=True)
class Life:
    """One child's: where its files are, after how many points it kills itself (None lets it live), and what plays it.

    `redis` is a log to share with others, in place of a file in the folder. A child stops itself, as a closed laptop does, at the
    first point that begins with `stops_at` and ends with `at`: it says so, and sleeps until it is continued. `client` is whose
    view it keeps.
    """

    folder: str
    dies_at: int | None = None
    engine: str = "own"
    address: str = ""
    redis: str | None = None
    stops_at: str | None = None
    at: str = ""
    client: str = "seen"


def agent(folder: Path) -> AgentWork:
    def look(use: ToolUse) -> Any:
        return {"sky": "clear"}

    async def charge(use: ToolUse) -> Any:
        return {"charged": use.arguments["cents"]}

    async def mail(use: ToolUse) -> Any:
        _note(folder / "mail_attempts", use.operation_id)
        if use.operation_id not in lines(folder / "mails"):
            _note(folder / "mails", use.operation_id)
        return {"mailed": use.arguments["to"]}

    async def launch(use: ToolUse) -> Any:
        _note(folder / "launches", use.operation_id)
        return {"launched": use.arguments["to"]}

    return AgentWork(
        model=ScriptedModel(TURNS, counted=folder / "asked"),
        tools=[
            Tool(name="look", run=look, effect="none"),
            Tool(name="charge", run=charge, effect="ledger"),
            Tool(name="mail", run=mail, effect="keyed", external=True),
            Tool(name="launch", run=launch, effect="once", external=True),
            Tool(name="refund", run=charge, effect="ledger", needs_approval=always),
        ],
    )


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _note(path: Path, line: str) -> None:
    """Add a line in one write, so that it is there whole once this returns, whatever becomes of the process."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


async def live(life: Life) -> None:
    folder, passed, stopped = Path(life.folder), 0, False

    async def reached(run_id: str, point: str) -> None:
        nonlocal passed, stopped
        passed += 1
        if (
            life.stops_at is not None
            and point.startswith(f"{life.stops_at} ")
            and point.endswith(life.at)
            and not stopped
        ):
            stopped = True
            print(json.dumps({"stopped": os.getpid()}), flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
        if passed == life.dies_at:
            _note(folder / "deaths", point)
            os.kill(os.getpid(), signal.SIGKILL)
        if life.dies_at is None and life.redis is None:
            _note(folder / "points", point)

    engine = Engine(
        Settings(
            scripts={"agent": work_on(life.engine, agent(folder), folder, life.address)},
            default="agent",
            log=SqliteLog(folder / "log.db") if life.redis is None else RedisLog(life.redis, lease=LEASE),
            hooks=Hooks(reached=reached),
        )
    )
    await engine.start()
    new = NewRun(principal="p", key="k", digest="d", token="", script="agent", session_id="s", input="go")
    run, _ = await engine.create(new)
    paused = await watch(engine, folder / life.client, run)
    action = json.loads(paused.outcome or "")["required_actions"][0]["id"]
    answer = NewRun(
        principal="p", key="k2", digest="d2", token="", script="", continues=paused.id, responses_digest="r",
        responses=({"action_id": action, "decision": "approve"},),
    )  # fmt: skip
    after, _ = await engine.create(answer)
    await watch(engine, folder / life.client, after)
    await engine.stop()


async def watch(engine: Engine, client: Path, run: RunRecord) -> RunRecord:
    """Follow a run to its end as a client does: each event once, from where this client was; keep what was seen."""
    seen = client.with_name(f"{client.name}.{run.number}")
    with engine.hub.watching(run.id, "p", stream=False) as watcher:
        after = len(lines(seen))
        async with asyncio.timeout(PATIENCE):
            while True:
                page = await engine.log.read(run.id, after, 1_000, 1 << 24)
                for event in page:
                    _note(seen, event.body.decode())
                after += len(page)
                now = await engine.log.run(run.id)
                if now is not None and now.status in SETTLED and now.last_sequence == after:
                    return now
                if not page:
                    await watcher.wait(None)


class Nursery:
    """Starts the program and has lives lived, one after the other."""

    def __init__(self, *modules: str) -> None:
        self._modules = modules  # imported before the first life, for all

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, __file__, *self._modules], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()

    def live(self, folder: Path, dies_at: int | None = None, on: On = OWN) -> bool:
        """Let a child live; return whether it died as it was told. A child that ends otherwise is an error."""
        self.begin(Life(str(folder), dies_at, on.engine, on.address))
        return self.end()

    def begin(self, life: Life) -> None:
        """Let a child begin to live."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(life)) + "\n")
        self._process.stdin.flush()

    def stopped(self) -> int:
        """Wait until the child has stopped itself; return its process id."""
        assert self._process.stdout is not None
        pid: int = json.loads(self._process.stdout.readline())["stopped"]
        return pid

    def end(self) -> bool:
        """Wait until the child has ended; return whether it died as it was told."""
        assert self._process.stdout is not None
        code = json.loads(self._process.stdout.readline())
        assert code in (0, -signal.SIGKILL), f"the child ended with {code}"
        return bool(code)


def nurse() -> None:
    for module in sys.argv[1:]:
        importlib.import_module(module)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(live(Life(**json.loads(line))))
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])), flush=True)


if __name__ == "__main__":
    nurse()
