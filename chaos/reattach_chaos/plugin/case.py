"""`ChaosCase`: one test's case, from its gate to its verdict: what the fixture `reattach_chaos` hands out.

The client under test is the test itself. It is given an address before the gate, shows what it shows, and says so to `check`, which
reads the truth past the gate and judges.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from reattach_chaos.cases.folder import ignored
from reattach_chaos.cases.servers.control import SETTLED, ServerTrouble
from reattach_chaos.cases.terms import STALL_MS
from reattach_chaos.checkers import CaseVerdict, judge
from reattach_chaos.gate import Gate
from reattach_chaos.history import Case, Created, Effect, History, Recorder, Status, Terminal, write_history
from reattach_chaos.plugin.failure import failure
from reattach_chaos.plugin.respond import Responder
from reattach_chaos.plugin.shown import id_of, told
from reattach_chaos.plugin.stage import PATIENCE_S, Stage
from reattach_chaos.schedules import Schedule, dumps
from reattach_chaos.schedules.fault import SILENCES


class ChaosCase:
    """One case. `open` before the test, `close` behind it.

    Attributes:
        url: The server, through the gate.
        headers: What this server wants to see of a client; empty for ours.
        schedule: What is planned.
    """

    def __init__(self, stage: Stage, schedule: Schedule, nodeid: str) -> None:
        self.schedule = schedule
        self.url = ""
        self.headers = stage.headers
        self._stage = stage
        self._nodeid = nodeid
        self._recorder = Recorder()
        self._gate: Gate | None = None
        self._stack = AsyncExitStack()
        self._watch: asyncio.Task[None] | None = None
        self._run = ""
        self._before = {run for run, _ in stage.runs()}
        self.checked = False

    @property
    def run_id(self) -> str:
        """The run that the client follows; made when this, or `events_url`, is asked for first."""
        if not self._run:
            self._run = self._stage.call(self._make())
        return self._run

    @property
    def events_url(self) -> str:
        """Where the run's events are read, through the gate."""
        return f"{self.url}/v1/runs/{quote(self.run_id, safe='')}/events"

    @property
    def runs_url(self) -> str:
        """Where a client starts a run itself, through the gate; `input` is what to send."""
        return f"{self.url}/v1/runs"

    @property
    def input(self) -> Any:
        """The input that makes the server play the scenario."""
        return self._stage.given(self._scenario)

    @property
    def respond(self) -> Responder:
        """A side effect for respx, which answers as the server does through the gate.

        Raises:
            pytest.fail.Exception: A stall is planned; it cannot be had without a real connection.
        """
        if any(planned.fault in SILENCES for planned in self.schedule.faults):
            pytest.fail(
                "respond cannot stall: leave stall and half-open out of the marker's faults, or use events_url",
                pytrace=False,
            )
        return Responder(self.url)

    def check(self, shown: Iterable[Any]) -> None:
        """Judge what the client showed; call it last.

        Args:
            shown: The ids of the events that it showed, in order; or mappings or objects with an `id`. An empty id is passed over:
                it is a control event's, `stream.…`, which is in no log.

        Raises:
            pytest.fail.Exception: A law is broken, or nothing is proven: a cut did not fire, or the server did not play along.
            TypeError: Something in it has no id.
        """
        self.checked = True
        given = [id_of(each) for each in shown]
        ids = [each for each in given if each]
        verdict, history = self._stage.call(self._judged(ids))
        if verdict.word != "valid":
            text = failure(
                verdict,
                history,
                self._nodeid,
                self._stage.options.again,
                self.save(history),
                nameless=len(given) - len(ids),
            )
            pytest.fail(text, pytrace=False)

    def save(self, history: History | None = None) -> Path:
        """Write the history, and the schedule beside it for `--reattach-replay`; return the history's path."""
        folder = ignored(self._stage.options.save)
        name = self.schedule.id
        if self._stage.names[name] > 1:  # several tests have this case
            name = f"{self._nodeid.rpartition('::')[2].partition('[')[0]}-{name}"
        path = folder / f"{name}.jsonl"
        write_history(path, history if history is not None else self._recorder.history())
        path.with_suffix(".json").write_text(dumps(self.schedule), encoding="utf-8")
        return path

    def open(self) -> None:
        """Put up the gate."""
        self._stage.call(self._open())

    def close(self) -> None:
        """Take the gate down; what is still connected through it ends."""
        self._stage.call(self._shut())

    async def _shut(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        await self._stack.aclose()

    async def _watched(self) -> None:
        """Take the gate down from a client that waits for ever: nothing else would end its test."""
        await asyncio.sleep(self._stage.client_s)
        await self._stack.aclose()

    @property
    def _scenario(self) -> str:
        scenario = self.schedule.scenario
        if not isinstance(scenario, str):
            raise pytest.UsageError(
                f"the schedule {self.schedule.id} has a scenario of its own, which is played by the simulation only"
            )
        return scenario

    async def _open(self) -> None:
        stage = self._stage
        actuator = await self._stack.enter_async_context(stage.actuator())
        gate = Gate(stage.address, self.schedule, self._recorder, actuator)
        self._gate = await self._stack.enter_async_context(gate)
        self.url = gate.url
        self._watch = asyncio.create_task(self._watched())

    async def _make(self) -> str:
        assert self._gate is not None
        made = await self._stage.control.create(self._stage.given(self._scenario), f"{self._nodeid[-100:]}-{id(self)}")
        self._gate.name_runs(made["id"])
        return str(made["id"])

    async def _judged(self, ids: list[str]) -> tuple[CaseVerdict, History]:
        await self._shut()
        stage, recorder = self._stage, self._recorder
        trouble = next(iter(self._gate.troubles), "") if self._gate is not None else ""
        found = [(run, key) for run, key in stage.runs() if run not in self._before]
        own = [run for run, _ in found if run != self._run]
        run = own[-1] if own else self._run
        for made, key in found:
            recorder.record(Created(run=made, key=key or None, who="control"))
        try:
            if not run:
                raise ServerTrouble("there is no run: neither events_url nor runs_url was used")
            ended = await stage.control.settled(run, PATIENCE_S / 2)
            for event in await stage.control.log(run):
                recorder.record(event.logged)
            for operation in await stage.control.effects(run) or ():
                recorder.record(Effect(operation_id=operation, run=run, who="server"))
            recorder.record(Status(status=ended["status"], run=run, who="control"))
            if ended["status"] in SETTLED:
                recorder.record(Terminal(witness="control", status=ended["status"], run=run, who="control"))
        except ServerTrouble as error:
            trouble = trouble or str(error)
        case = Case(
            id=self.schedule.id,
            seed=stage.options.seed,
            mode="start" if own else "follow",
            runs=max(1, len(found) - len(own) + bool(own)),
            heartbeat_ms=stage.heartbeat_ms,
            stall_heartbeats=max(4.0, STALL_MS / stage.heartbeat_ms),
        )
        history = told(recorder.history(), ids, run, case)
        verdict = judge(history)
        return (replace(verdict, trouble=trouble) if trouble else verdict), history
