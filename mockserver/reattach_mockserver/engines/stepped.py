"""An agent that does its steps one at a time, and the work that has them taken by a workflow.

Never here: an engine. Checked by tests/mockserver/engines/.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from reattach_mockserver.engine.work import Asking, Desk


class Steps(Protocol):
    """One run's steps."""

    async def step(self, name: str) -> Any:
        """Do one step, or return what it came to: its events are published under its name, so a repetition finds them.

        What is returned is a small JSON value: what a client sees belongs into the log, not into the workflow.
        """


class Stepwise(Protocol):
    """An agent that can be asked for one step at a time; see `agent/flow.py` for which."""

    def steps(self, desk: Desk) -> Steps:
        """Return the steps of the run of this desk, as its log stands."""


class SteppedWork:
    """What every engine's work says of itself: what its agent says."""

    def __init__(self, agent: Stepwise) -> None:
        self._agent = agent

    @property
    def release(self) -> str | None:
        """The agent's version, if it has one."""
        release = getattr(self._agent, "release", None)
        return release if isinstance(release, str) else None

    def asks(self, action: Mapping[str, Any]) -> bool:
        """Tell whether a required action would still be done as it was asked for; see `work.Asking`."""
        return self._agent.asks(action) if isinstance(self._agent, Asking) else True
