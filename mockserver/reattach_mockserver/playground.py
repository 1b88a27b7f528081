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
from reattach_mockserver.settings import Playable, Settings

_PATIENCE = 10.0  # seconds; only a broken server takes longer


class Playground:
    """A running server. Use it as a context manager.

    Attributes:
        url: Its address; give it to the client under test.
    """

    def __init__(self) -> None:
        self._scripts: dict[str, Playable] = {}
        library = _Growing(self._scripts)
        self._server = LiveServer(Settings(scripts=library, default="hello"))
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
        elif isinstance(scenario, str) and scenario in self._server.app.engine.settings.scripts:
            return scenario
        elif isinstance(scenario, str) and not scenario.endswith((".yaml", ".yml", ".json")):
            ready = ", ".join(sorted(self._server.app.engine.settings.scripts))
            raise ValueError(f"scenario={scenario!r}: a path, or one of {ready} is needed")
        else:
            script = load_script(os.fspath(scenario))
        self._scripts[script.name] = script
        return script.name

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

    def expire(self, run_id: str, first: int | None = None) -> None:
        """Let go of the run's events before `first`, as retention would; None: of all but the newest."""
        self._server.expire(run_id, len(self._server.log(run_id)) if first is None else first)

    def restart(self) -> None:
        """Do what the death and rebirth of the process would: every connection is cut, unfinished runs go on."""
        self._server.restart()

    def new_epoch(self, run_id: str, keep: int | None = None) -> None:
        """Replace the run's log; `keep` loses the events after that sequence."""
        self._server.new_epoch(run_id, keep)


class _Growing(Library):
    """A library whose given scripts may come later."""

    def __init__(self, given: dict[str, Playable]) -> None:
        super().__init__()
        self._scripts = given
