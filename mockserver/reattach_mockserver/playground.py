"""A reference server in the hands of one test: what the pytest fixture `reattach_server` yields.

Names and meanings are the surface's, section 6. It serves on a free port of this machine, from a thread of the test's own
process, so that tests may run side by side in several (xdist). It starts runs through the front door, as any client would.

Never here: pytest; a fault on the wire (that is the chaos kit's `reattach_proxy`).
"""

from __future__ import annotations

import json
import os
import urllib.request
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from reattach_mockserver.library import Library
from reattach_mockserver.live import LiveServer
from reattach_mockserver.logs.base import Counts
from reattach_mockserver.scenarios.parse import load_script
from reattach_mockserver.scenarios.script import Script
from reattach_mockserver.scenarios.steps import TYPE, reserved
from reattach_mockserver.settings import Settings

_PATIENCE = 10.0  # seconds; only a broken server takes longer


class Playground:
    """A running server. Use it as a context manager.

    Attributes:
        url: Its address; give it to the client under test.
    """

    def __init__(self) -> None:
        self._library = Library()
        self._server = LiveServer(Settings(scripts=self._library, default="hello"))
        self.url = ""

    def __enter__(self) -> Self:
        self._server.start()
        self.url = self._server.url
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()

    def start(self, scenario: str | os.PathLike[str] | Script = "hello", *, key: str | None = None) -> str:
        """Start a run and return its id.

        Args:
            scenario: The name of a ready one, the path of a file, or a Script.
            key: Its idempotency key; None makes one.

        Raises:
            ScenarioError: The file is no scenario; the text has line and column.
            ValueError: No ready scenario has this name.
        """
        name = self.add(scenario)
        body = json.dumps({"input": {"scenario": name}}).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key or uuid.uuid4().hex}
        request = urllib.request.Request(f"{self.url}/v1/runs", body, headers, method="POST")
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            created: Mapping[str, Any] = json.load(answer)
        return str(created["id"])

    def add(self, scenario: str | os.PathLike[str] | Script) -> str:
        """Let clients ask for a scenario by its name, `{"scenario": NAME}`; return the name. See `start`."""
        if isinstance(scenario, Script):
            script = scenario
        elif isinstance(scenario, str) and scenario in self._library:
            return scenario
        elif isinstance(scenario, str) and not scenario.endswith((".yaml", ".yml", ".json")):
            ready = ", ".join(sorted(self._library))
            raise ValueError(f"scenario={scenario!r}: a path, or one of {ready} is needed")
        else:
            script = load_script(os.fspath(scenario))
        return self._library.add(script)

    def events_url(self, run_id: str) -> str:
        """Return where the run's events are read, as server-sent events."""
        return self._server.events_url(run_id)

    def log(self, run_id: str) -> list[dict[str, Any]]:
        """Return every event of the run as it was sent, those too that are no longer handed out."""
        return [json.loads(body) for body in self._server.log(run_id)]

    @property
    def counts(self) -> Counts:
        """How much work there was: runs, events, effects, effect_attempts."""
        return self._server.counts

    def readers(self, run_id: str) -> int:
        """Return how many read the run at the moment."""
        return self._server.readers(run_id)

    @property
    def calls(self) -> dict[str, int]:
        """How often each route was called, such as `{"GET /v1/runs/{run_id}/events": 2}`."""
        return dict(self._server.app.calls)

    def publish(
        self, run_id: str, type: str, data: Mapping[str, Any] | None = None, *, text: str | None = None
    ) -> dict[str, Any]:
        """Append an event to a run, beside what it plays, and return it.

        Args:
            run_id: A run that has not settled.
            type: Any type but those that only a server appends (`run.…`, `action.…`, `stream.…`, `release.changed`).
            data: Its data.
            text: What it adds to the visible text, where its type is not one of the protocol's.

        Raises:
            ValueError: It is no type that may be published.
            KeyError: There is no such run.
            RunSettled: The run's log grows no more.
        """
        if not TYPE.fullmatch(type) or reserved(type):
            raise ValueError(f"type={type!r}: one line that is none of the server's own types is needed")
        event: dict[str, Any] = json.loads(self._server.publish(run_id, type, data or {}, text).body)
        return event

    def advance(self, seconds: float) -> None:
        """Move the server's clock forward: waits of scenarios, expiry, retention and overload come closer by so many seconds.

        Heartbeats, the age of streams and long polls keep real time.
        """
        self._server.advance(round(seconds * 1_000))

    def expire(self, run_id: str | None = None, first: int | None = None) -> None:
        """Let go of the events before `first`, as retention would.

        Args:
            run_id: Of this run; None: of every run.
            first: The first that is kept; None: the newest.
        """
        for each in self._these(run_id):
            self._server.expire(each, len(self._server.log(each)) if first is None else first)

    def restart(self) -> None:
        """Do what the death and rebirth of the process would: every connection is cut, unfinished runs go on."""
        self._server.restart()

    def new_epoch(self, run_id: str | None = None, keep: int | None = None) -> None:
        """Replace a run's log under the same run id.

        Args:
            run_id: This run's; None: every run's.
            keep: Lose the events after this sequence, as an unsynced tail would be lost; None loses none.
        """
        for each in self._these(run_id):
            self._server.new_epoch(each, keep)

    def _these(self, run_id: str | None) -> list[str]:
        return [run.id for run in self._server.runs()] if run_id is None else [run_id]
