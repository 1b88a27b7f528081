"""`Client`: who is under test: ours, one of the mutants, or any command, each by the contract of `README.md`.

A client is told by its environment what to follow. What a case asks of it is an `Errand`; ours does all of them with the words
of its command line, another only what the contract has: it follows a run, or starts one.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from reattach_chaos.cases.inside.instants import Instants
from reattach_chaos.cases.processes.process import BornProcess, Process, ShellProcess
from reattach_chaos.cases.processes.workers import Workers
from reattach_chaos.cases.terms import OURS, SMALL, Backoff
from reattach_chaos.schedules import Place
from reattach_chaos.schedules.place import OF_CLIENT
from reattach_chaos.schedules.schedule import Route

Mode = Literal["follow", "start"]
Task = Literal["follow", "start", "answer", "list", "cancel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What a client is to do in one case with one run.

    Attributes:
        task: What.
        url: The server, through the gate.
        run: The run that exists, or that is to be answered; "" with `start`.
        session: Its session's id.
        given: The input as a text; with `start`.
        key: With `start`.
        actions: The ids of what is to be answered.
        token: Its token, "" for none.
        state: Its folder, of this run alone; kept over kills.
        types: The types of events.
        timeout_s: When it will be ended.
        heartbeat_s: What the server keeps.
        case: The case's id.
        on_gap: What ours does where events are gone, "" for what it does unasked; see `reattach follow --on-gap`.
        names: Where a resolver of ours finds that the server's name is not known just now; None: names are as they are.
        trusted: The certificate that the client has to know; None: there is no TLS.
        used: A process of ours will do that was another case's client before: making one costs as much as a case.
        inside: What its process is to do to itself; a process of ours.
    """

    task: Task
    url: str
    run: str
    session: str = ""
    given: str = ""
    key: str = ""
    actions: tuple[str, ...] = ()
    token: str
    state: Path
    types: tuple[str, ...]
    timeout_s: float
    heartbeat_s: float
    case: str
    used: bool = False
    on_gap: str = ""
    inside: Instants | None = None
    names: Path | None = None
    trusted: Path | None = None

    def env(self, attempt: int) -> dict[str, str]:
        """Return the environment: ours, and the contract's."""
        told = {
            "REATTACH_MODE": "start" if self.task == "start" else "follow",
            "REATTACH_URL": self.url,
            "REATTACH_EVENT_TYPES": ",".join(self.types),
            "REATTACH_TOKEN": self.token,
            "REATTACH_STATE": str(self.state),
            "REATTACH_ATTEMPT": str(attempt),
            "REATTACH_TIMEOUT_S": f"{self.timeout_s:g}",
            "REATTACH_CASE": self.case,
            "REATTACH_HEARTBEAT_S": f"{self.heartbeat_s:g}",
        }
        if self.task == "start":
            told |= {
                "REATTACH_RUNS_URL": f"{self.url}/v1/runs",
                "REATTACH_INPUT": self.given,
                "REATTACH_KEY": self.key,
            }
        else:
            told |= {"REATTACH_RUN": self.run, "REATTACH_EVENTS_URL": f"{self.url}/v1/runs/{self.run}/events"}
        if self.trusted is not None:
            told["SSL_CERT_FILE"] = str(self.trusted)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("REATTACH_")}
        return {**kept, **told}


class Client(Protocol):
    """Who is under test."""

    name: str
    """As it was named on the command line."""
    ours: bool
    """It is one of ours, for which a sample has cases of its own."""
    marks: bool
    """It marks what it may have shown before."""
    leases: bool
    """Two of its processes on one state know of each other, by a lease."""
    clocks: bool
    """Its process takes clocks of ours, and says when it has seen a step of them."""
    backoff: Backoff | None
    """How it waits; None: that is not known."""
    routes: frozenset[Route]
    """The kinds of requests that it makes, in some errand."""
    settings: frozenset[str]
    """The members of a schedule's `client` that it obeys."""
    instants: frozenset[Place]
    """The instants of its own that its process sees, and does faults at."""
    ways: frozenset[str]
    """In which ways its route to a server can be lost, beside what a gate does to it: "name", "tls"."""

    def steps(self, errand: Errand) -> int:
        """Return how many processes an errand takes, one after the other."""
        ...

    async def start(self, errand: Errand, step: int, attempt: int) -> Process:
        """Start a process of it.

        Raises:
            OSError: It cannot be started.
        """
        ...


class CommandClient:
    """Any command, run by the shell; what it does beside the contract is not known.

    Args:
        command: What the shell runs.
        mode: Whether it starts runs itself.
        born: Told of each process id; see `processes/warden.py`.
    """

    ours = marks = leases = clocks = False

    def __init__(
        self,
        command: str,
        mode: Mode = "follow",
        *,
        born: Callable[[int], None] = lambda pid: None,
    ) -> None:
        self.name = command
        self.settings: frozenset[str] = frozenset()
        self.instants: frozenset[Place] = frozenset()
        self.ways: frozenset[str] = frozenset()
        self.backoff: Backoff | None = None
        self._born = born
        self.routes: frozenset[Route] = frozenset({"stream"} if mode == "follow" else {"create", "stream"})

    def steps(self, errand: Errand) -> int:
        """One."""
        return 1

    async def start(self, errand: Errand, step: int, attempt: int) -> Process:
        """See the seam."""
        return await ShellProcess.spawn(self.name, errand.env(attempt), errand.state.parent / "stderr", self._born)


class OwnClient:
    """`reattach` itself, by its command line.

    Args:
        nursery: Where it is born.
        workers: Processes that are one client after the other.
    """

    name = "reattach"
    ours = marks = leases = clocks = True
    backoff: Backoff | None = OURS
    routes: frozenset[Route] = frozenset({"create", "stream", "status", "list", "cancel", "answer"})
    settings: frozenset[str] = frozenset({"on_gap"})
    instants = frozenset(OF_CLIENT)
    ways: frozenset[str] = frozenset({"name", "tls"})

    def __init__(self, nursery: Path, workers: Workers) -> None:
        self._nursery = nursery
        self._workers = workers

    def steps(self, errand: Errand) -> int:
        """Two where a command does something, and another shows the run."""
        return len(self._words(errand))

    async def start(self, errand: Errand, step: int, attempt: int) -> Process:
        """See the seam."""
        (module, words), env = _ordered(errand, *self._words(errand)[step]), errand.env(attempt)
        stderr = errand.state.parent / "stderr"
        if errand.used:
            return await self._workers.start(module, words, env, stderr)
        return await BornProcess.bear(self._nursery, module, words, env, stderr)

    def _words(self, errand: Errand) -> list[tuple[str, list[str]]]:
        url, run, journal = errand.url, errand.run, str(errand.state / "j.db")
        flags = ["--json", "--journal", journal]
        follow = ("reattach.cli", ["follow", url, run, *flags, *(["--on-gap", errand.on_gap] if errand.on_gap else [])])
        match errand.task:
            case "follow":
                return [follow]
            case "start":
                return [("reattach.cli", ["run", url, errand.given, "--key", errand.key, *flags])]
            case "answer":
                answers = [word for action in errand.actions for word in (action, "approve")]
                return [follow, ("reattach.cli", ["respond", url, run, *answers, *flags])]
            case "cancel":
                return [("reattach.cli", ["cancel", url, run, *flags]), follow]
            case "list":
                return [("reattach_chaos.cases.inside.lister", [url, run, errand.session, journal])]


class MutantClient:
    """A small client that is wrong in one decision, or right; see `reattach_chaos.mutants`.

    Args:
        mutant: Its name.
        nursery: Where it is born.
        mode: Whether it starts runs itself.
    """

    ours = marks = leases = True
    clocks = False
    settings: frozenset[str] = frozenset()
    instants = frozenset(OF_CLIENT) - {Place.ACKNOWLEDGED}
    ways: frozenset[str] = frozenset({"name"})
    backoff: Backoff | None = SMALL

    def __init__(self, mutant: str, nursery: Path, mode: Mode = "follow") -> None:
        self.name = f"mutant {mutant}"
        self.routes: frozenset[Route] = frozenset({"stream"} if mode == "follow" else {"create", "stream"})
        self._mutant = mutant
        self._nursery = nursery

    def steps(self, errand: Errand) -> int:
        """One."""
        return 1

    async def start(self, errand: Errand, step: int, attempt: int) -> Process:
        """See the seam."""
        return await BornProcess.bear(
            self._nursery,
            *_ordered(errand, "reattach_chaos.mutants.__main__", [self._mutant]),
            errand.env(attempt),
            errand.state.parent / "stderr",
        )


def _ordered(errand: Errand, module: str, words: list[str]) -> tuple[str, list[str]]:
    """Return what a process of ours runs: with what it is to do to itself, and where it looks names up, where there is such."""
    if errand.inside is not None:
        module, words = "reattach_chaos.cases.inside.watched_client", [errand.inside.word(), module, *words]
    if errand.names is not None:
        module, words = "reattach_chaos.cases.inside.resolver", [str(errand.names), module, *words]
    return module, words
