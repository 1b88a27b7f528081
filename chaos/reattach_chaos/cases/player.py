"""`Player`: plays one case from its schedule to its verdict.

The server's runs are made past the faults, the gate is put up, the client does its errands in front of it, then the truth is read:
the logs, the ends, the effects, how many runs there are. All of it is the case's history, and the verdict is the checkers'.

Every wait has an end. What goes wrong with the stage itself makes a case unknown where no law is broken, never valid.
"""

import asyncio
import os
import shutil
import tempfile
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from reattach_chaos.cases.chains import Chain, names_of, steps_of
from reattach_chaos.cases.client import Client, Errand, Mode
from reattach_chaos.cases.errands import Part, parts_of
from reattach_chaos.cases.running import Running
from reattach_chaos.cases.servers.control import SETTLED, Control, Event, ServerTrouble
from reattach_chaos.cases.servers.deeds import Deeds
from reattach_chaos.cases.servers.log_faults import LOG_FAULTS
from reattach_chaos.cases.servers.own_server import Making, OwnServer, begun, needs_own, needs_two
from reattach_chaos.cases.servers.ways import Ways
from reattach_chaos.cases.session import SETTLE_S, Session, as_text, made
from reattach_chaos.cases.terms import Terms
from reattach_chaos.checkers import judge
from reattach_chaos.gate import Gate
from reattach_chaos.gate.actuators import Actuator
from reattach_chaos.gate.cuts import Exchange
from reattach_chaos.gate.link import Address
from reattach_chaos.gate.offsets import Boundary
from reattach_chaos.history import (
    Case,
    Counts,
    Created,
    CutPlanned,
    Effect,
    History,
    Other,
    Recorder,
    Server,
    Status,
    Terminal,
    printable,
)
from reattach_chaos.report import Played
from reattach_chaos.schedules import Fault, Planned, Schedule
from reattach_chaos.toxiproxy.control import ToxiproxyError

TRIES = 3
"""So often a case is played whose faults did not all come, or that had trouble: a race on the way to a place, a port that somebody
took, are nobody's fault, and prove nothing.
"""
OF_PROCESS = frozenset({Fault.KILL, Fault.STORE_FAILURE, Fault.SUSPEND, Fault.SECOND_CLIENT, Fault.NO_ROUTE})
"""What is done to a client's process, or needs it made in a way of its own; in all other cases ours may be another case's, too."""
STDERR_BYTES = 8_192
CANCELLABLE = {"scenario": "cancel-me"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What all cases of a run share.

    Attributes:
        http: Of the control reader.
        url: The server.
        admin_url: Of a server of ours.
        session: What is played.
        client: Who is under test.
        mode: Whether it starts runs itself.
        terms: What it is held to.
        token: Returns a case's token.
        actuator: Returns who ends a case's connections.
        making: How a server for one case alone is made; None: the server is none of ours.
        sessions: Others that are played, by the scenario that a schedule names.
        skips: The server is known to leave out events: the client is judged by what it makes of that.
    """

    http: httpx.AsyncClient
    url: str
    admin_url: str | None
    session: Session
    client: Client
    mode: Mode
    terms: Terms
    token: Callable[[], str]
    actuator: Callable[[], AbstractAsyncContextManager[Actuator]]
    making: Making | None = None
    sessions: dict[str, Session] = field(default_factory=dict)
    skips: bool = False

    def session_of(self, schedule: Schedule) -> Session:
        """Return what a schedule is about."""
        return (
            self.sessions.get(schedule.scenario, self.session) if isinstance(schedule.scenario, str) else self.session
        )


@dataclass(frozen=True, slots=True)
class Served:
    """The server of a case.

    Attributes:
        url: Its address.
        admin_url: Of one of ours.
        before: The number of the last run that was on it before.
        own: It is this case's alone.
        others: Its further instances, which nothing but "other-instance" leads to.
    """

    url: str
    admin_url: str | None
    before: int
    own: OwnServer | None = None
    others: tuple[OwnServer, ...] = ()


class Player:
    """Plays cases, any number at a time."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._number = 0  # the server's last run that is known; those of a case that begins now are later

    async def play(self, schedule: Schedule) -> Played:
        """Play a case, again where it proved nothing; never raises but where it is cancelled.

        What is broken beside a trouble of ours may be so by the trouble.
        """
        for _ in range(TRIES - 1):
            case = await self._once(schedule)
            if case.verdict.word != "unknown" and not case.verdict.trouble:
                return case
        return await self._once(schedule)

    async def clean(self, schedule: Schedule) -> tuple[Played, list[Boundary]]:
        """Play a case once; return it, and every place of its streams that was passed."""
        notes: list[Boundary] = []
        return await self._once(schedule, notes), notes

    async def _once(self, schedule: Schedule, notes: list[Boundary] | None = None) -> Played:
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="reattach-chaos-"))
        recorder = Recorder()
        trouble = ""
        try:
            await self._play(schedule, recorder, folder, notes)
        except (ServerTrouble, ToxiproxyError, OSError) as error:
            trouble = str(error)
        except Exception as error:  # an accident of ours in one case is to cost no other case its verdict
            trouble = _accident(error)
        finally:
            stderr = await asyncio.to_thread(last_words, folder)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        history = recorder.history()
        verdict = await asyncio.to_thread(judge, history)
        trouble = trouble or _trouble_of(history)
        if trouble:
            verdict = replace(verdict, trouble=trouble, case=schedule.id)
        return Played(schedule=schedule, history=history, verdict=verdict, stderr=stderr)

    def control(self, token: str) -> Control:
        """Return a hand at the server with this token."""
        return Control(self.stage.http, self.stage.url, token, self.stage.admin_url)

    async def _play(self, schedule: Schedule, recorder: Recorder, folder: Path, notes: list[Boundary] | None) -> None:
        async with self._served(schedule, folder) as served:
            await self._play_on(served, schedule, recorder, folder, notes)

    @asynccontextmanager
    async def _served(self, schedule: Schedule, folder: Path) -> AsyncIterator[Served]:
        """Give a case its server: everybody's, or one of its own."""
        stage = self.stage
        if stage.making is None or not needs_own(schedule):
            yield Served(stage.url, stage.admin_url, self._number)
            return
        session = stage.session_of(schedule)
        steps = steps_of(schedule, parts_of(schedule, session, stage.mode), session)
        async with AsyncExitStack() as stack:
            log, others = "", tuple[OwnServer, ...]()
            if needs_two(schedule):
                log = await stack.enter_async_context(stage.making.redis.database())
                second = begun(stage.making, schedule, folder, log=log, name="second")
                others = (await stack.enter_async_context(second),)
            own = await stack.enter_async_context(begun(stage.making, schedule, folder, steps, log=log))
            yield Served(own.url, own.admin_url, 0, own, others)

    async def _play_on(
        self, served: Served, schedule: Schedule, recorder: Recorder, folder: Path, notes: list[Boundary] | None
    ) -> None:
        stage, session = self.stage, self.stage.session_of(schedule)
        token = stage.token()
        control = Control(stage.http, served.url, token, served.admin_url)
        parts = parts_of(schedule, session, stage.mode)
        recorder.record(self._case(schedule, session, parts))
        if stage.skips:
            recorder.record(Server(did="skipped", who="server"))
        for number, planned in enumerate(schedule.faults, 1):
            if planned.route is None:
                recorder.record(
                    CutPlanned(
                        cut=number,
                        fault=planned.fault.value,
                        position=planned.at.place.value,
                        phase=planned.phase,
                        event_kind=session.shape.kind(planned.at.run, planned.at.event or 0) or "",
                        sequence=planned.at.event,
                    )
                )
        chains = [
            await self._made(control, session, part, f"{schedule.id}-{place}") for place, part in enumerate(parts)
        ]
        ways = Ways(schedule, folder)
        deeds = Deeds(control, recorder, served.own, ways, schedule)

        async def perform(planned: Planned, exchange: Exchange) -> None:
            if planned.fault is Fault.SUSPEND:
                await running.suspend(planned)
            else:
                await deeds.perform(planned, exchange)

        async with (
            deeds,
            ways,
            stage.actuator() as actuator,
            Gate(
                _address(served.url),
                schedule,
                recorder,
                actuator,
                others=[_address(other.url) for other in served.others],
                shape=session.shape,
                perform=perform,
                notes=notes is not None,
            ) as gate,
        ):
            url = await ways.lead(gate.url)
            running = Running(stage.client, recorder, gate, schedule, stage.terms.timeout_s)
            names = names_of(chains, schedule)
            gate.name_runs(*names)
            await deeds.meet(gate, *names)
            for place, chain in enumerate(chains):
                state = (
                    folder / f"state-{place}"
                )  # a client under test knows of one run: it would go on after another's events
                await asyncio.to_thread(state.mkdir)
                await running.errand(self._errand(schedule, place, chain, (url, ways), token, state), chain.part.run)
                if running.timed_out:
                    break
            if notes is not None:
                notes += gate.boundaries
            await deeds.over()
        await self._read(control, recorder, session, chains, served, deeds)

    def _case(self, schedule: Schedule, session: Session, parts: list[Part]) -> Case:
        terms = self.stage.terms
        return Case(
            id=schedule.id,
            seed=schedule.seed,
            mode=self.stage.mode,
            runs=sum(session.runs[part.run - 1].depth + 1 for part in parts),
            marks=terms.marks,
            heartbeat_ms=terms.heartbeat_ms,
            stall_heartbeats=terms.stall_heartbeats,
            converge_ms=terms.converge_ms,
            **(asdict(terms.backoff) if terms.backoff is not None else {}),
        )

    async def _made(self, control: Control, session: Session, part: Part, key: str) -> Chain:
        """Make the runs that a part needs. A client that answers or starts makes the last one itself."""
        run = session.runs[part.run - 1]
        if part.task == "start":
            return Chain(part, (), "")
        given = CANCELLABLE if part.task == "cancel" else run.given
        depth = run.depth - 1 if part.task == "answer" else run.depth
        told = await made(control, given, depth, key)
        ids = tuple(each["id"] for each in told)
        session_id = str(told[-1].get("session_id") or "")
        if part.task != "answer":
            return Chain(part, ids, session_id)
        paused = await control.settled(ids[-1], SETTLE_S)
        actions = tuple(action["id"] for action in paused.get("required_actions") or ())
        return Chain(part, ids, session_id, actions, goes_on=True)

    def _errand(
        self, schedule: Schedule, place: int, chain: Chain, way: tuple[str, Ways], token: str, state: Path
    ) -> Errand:
        url, ways = way
        stage, session = self.stage, self.stage.session_of(schedule)
        return Errand(
            task=chain.part.task,
            url=url,
            run=chain.runs[-1] if chain.runs else "",
            session=chain.session_id,
            given=as_text(session.runs[chain.part.run - 1].given),
            key=f"{schedule.id[:100]}-{place}",
            actions=chain.actions,
            token=token,
            state=state,
            types=session.types,
            timeout_s=stage.terms.timeout_s,
            heartbeat_s=stage.terms.heartbeat_ms / 1000,
            case=schedule.id,
            on_gap=schedule.client.get("on_gap") or ("continue" if _changes_log(schedule) else ""),
            names=ways.names,
            trusted=ways.trusted,
            used=not any(each.fault in OF_PROCESS for each in schedule.faults),
        )

    async def _read(
        self,
        control: Control,
        recorder: Recorder,
        session: Session,
        chains: list[Chain],
        served: Served,
        deeds: Deeds,
    ) -> None:
        """Read what is true, now that all is over."""
        counted = await control.runs_since(served.before)
        if counted is not None:
            found = counted[0]
            if served.own is None:
                self._number = max(self._number, counted[1])
            for run, key in found:
                recorder.record(Created(run=run, key=key, who="control"))
        else:
            found = []
        shown = [chain.runs[-1] for chain in chains if chain.runs]
        known = {run for chain in chains for run in chain.runs}
        shown += [run for run, _ in found if run not in known]  # what the client itself started
        events = calls = 0
        for run in shown:
            status = await deeds.end_of(run)
            ever, log = await deeds.all_of(run)
            done = await control.effects(run)
            self._tell(recorder, run, status, ever, done)
            events += len(log)
            calls += len(done or ())
        if any(chain.part.task in ("cancel", "start") for chain in chains):
            return  # how much a cancelled run did is chance; what a start did is told by the number of runs
        twins = [session.runs[chain.part.run - 1] for chain in chains]
        twins += [session.runs[chain.part.run - 2] for chain in chains if chain.goes_on]
        # Where a start or an answer was refused for good there is less to count, and that is told by other laws.
        if control.counts_effects and len(shown) == len(twins):
            recorder.record(Counts(of="case", events=events, calls=calls, who="control"))
            recorder.record(
                Counts(
                    of="twin",
                    events=sum(len(twin.events) for twin in twins),
                    calls=sum(twin.calls for twin in twins),
                    who="control",
                )
            )

    def _tell(self, recorder: Recorder, run: str, status: str, log: list[Event], effects: list[str] | None) -> None:
        for event in log:
            recorder.record(event.logged)
        for operation in effects or ():
            recorder.record(Effect(operation_id=operation, run=run, who="server"))
        recorder.record(Status(status=status, run=run, who="control"))
        if status in SETTLED:
            recorder.record(Terminal(witness="control", status=status, run=run, who="control"))


def _address(url: str) -> Address:
    upstream = urlsplit(url)
    return (upstream.hostname or "127.0.0.1", upstream.port or 80)


def _accident(error: Exception) -> str:
    """Say what went wrong in us, and where, as somebody needs it who is to mend it."""
    *_, last = traceback.extract_tb(error.__traceback__)
    what, where = printable(f"{type(error).__name__}: {error}"), f"{Path(last.filename).name}:{last.lineno}"
    return f"reattach chaos itself failed: {what} ({where})"


def _changes_log(schedule: Schedule) -> bool:
    return any(each.fault in LOG_FAULTS for each in schedule.faults)


def last_words(folder: Path) -> str:
    """Return the end of what a case's client wrote to stderr, as text that can be shown."""
    try:
        with (folder / "stderr").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - STDERR_BYTES))
            told = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "".join(each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in told)


def _trouble_of(history: History) -> str:
    """Return what the gate could not do, in words."""
    return next((str(record.facts.get("message", "")) for record in history.of(Other) if record.name == "trouble"), "")
