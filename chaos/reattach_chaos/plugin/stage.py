"""`Stage`: what the cases of one pytest process share: a thread with an event loop, a server, a Toxiproxy, our hand.

Made for the first case, taken down with pytest. A case's gate lives in this thread too, so that the client under test may block.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from reattach_chaos.cases.backend import Backend
from reattach_chaos.cases.servers.control import Control
from reattach_chaos.cases.session import RunOf, clean_pass, input_of
from reattach_chaos.cases.terms import HEARTBEAT_MS
from reattach_chaos.gate.actuators import Actuator, LocalActuator
from reattach_chaos.plugin.options import Options
from reattach_chaos.plugin.wire import Unmocked
from reattach_chaos.schedules import Shape, shape_of
from reattach_mockserver.library import Library
from reattach_mockserver.live import LiveServer
from reattach_mockserver.scenarios.parse import load_script
from reattach_mockserver.scenarios.script import Script
from reattach_mockserver.settings import Limits, Settings

T = TypeVar("T")
PATIENCE_S = 90.0
"""For anything that is asked of the stage; a run of a scenario may take a minute."""


CLIENT_S = 30.0


class Stage:
    """It. `close` takes it down; safe twice."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._library = Library()
        self._server: LiveServer | None = None
        self._backend: Backend | None = None
        self.names: Counter[str] = Counter()
        """How many tests have a case of this id."""
        self.client_s = CLIENT_S
        """So long a case's client has."""
        self._shapes: dict[str, Shape] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="reattach stage", daemon=True)
        self._thread.start()
        self._open = AsyncExitStack()
        try:
            self._url, admin_url = self._serve()
            self.control = self.call(self._controls(admin_url))
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> tuple[str, int]:
        """Where the server is."""
        parts = urlsplit(self._url)
        return parts.hostname or "127.0.0.1", parts.port or 80

    @property
    def heartbeat_ms(self) -> float:
        """What the server keeps."""
        return self.options.target.heartbeat_ms if self.options.target else HEARTBEAT_MS

    @property
    def headers(self) -> dict[str, str]:
        """What a client must send to be let in."""
        token = self.options.target.token if self.options.target else ""
        return {"Authorization": f"Bearer {token}"} if token else {}

    def actuator(self) -> AbstractAsyncContextManager[Actuator]:
        """Return who ends a case's connections: the gate itself, unless a Toxiproxy was named.

        Toxiproxy has one kind of end at a time: while that changes between two cuts it refuses connections, and a test's client
        often has no patience at all.
        """
        return nullcontext(LocalActuator()) if self._backend is None else self._backend.actuator()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the stage's thread and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def given(self, scenario: str) -> Any:
        """Return the input that makes a server play a scenario."""
        target = self.options.target
        if target is not None:
            return input_of(scenario) if target.input is None else target.input
        return input_of(self._named(scenario).name)

    def shape(self, scenario: str) -> Shape:
        """Return the events of a scenario's first run, from one play without a fault; on our server that takes no time."""
        if scenario not in self._shapes:
            self._shapes[scenario] = self.call(self._clean(scenario))
        return self._shapes[scenario]

    def runs(self) -> list[tuple[str, str]]:
        """Return (id, key) of every run on our server, in order."""
        return [(run.id, run.key) for run in self._server.runs()] if self._server else []

    def close(self) -> None:
        """Take it down."""
        if not self._thread.is_alive():
            return
        try:
            self.call(self._open.aclose())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_S)
            self._loop.close()
            if self._server is not None:
                self._server.stop()

    def _serve(self) -> tuple[str, str | None]:
        if self.options.target is not None:
            return self.options.target.url, None
        settings = Settings(
            scripts=self._library,
            default="hello",
            limits=Limits(heartbeat_ms=round(HEARTBEAT_MS)),
            seed=self.options.seed,
        )
        self._server = LiveServer(settings, admin=True).start()
        return self._server.url, self._server.admin_url

    async def _controls(self, admin_url: str | None) -> Control:
        http = await self._open.enter_async_context(httpx.AsyncClient(transport=Unmocked()))
        options = self.options
        if options.backend != "auto":
            self._backend = await self._open.enter_async_context(Backend(options.backend, "", options.seed))
        return Control(http, self._url, options.target.token if options.target else "", admin_url)

    async def _clean(self, scenario: str) -> Shape:
        given = self.given(scenario)
        if self.options.target is None:
            script = self._named(scenario)
            given = input_of(self._library.add(replace(script, name=f"{script.name} (clean)", clock="virtual")))
        runs: tuple[RunOf, ...] = (
            await clean_pass(self.control, [given], f"clean-{os.getpid()}-{len(self._shapes)}")
        ).runs
        return shape_of([event.logged.type for event in runs[0].events])

    def _named(self, scenario: str) -> Script:
        """Return a ready scenario, or the one in a file, which the server knows from then on."""
        if scenario in self._library:
            found = self._library[scenario]
            assert isinstance(found, Script), scenario
            return found
        if not scenario.endswith((".yaml", ".yml", ".json")):
            raise ValueError(f"scenario={scenario!r}: a path, or one of {', '.join(self._library)} is needed")
        script = load_script(scenario)
        self._library.add(script)
        return script
