"""The seam of plug-in work: what plays a run that no script and no recording plays.

A work is given a `Desk` and returns an `Outcome`. The engine begins it with the run, and again whenever a process takes the
run over: it is always called with the log as it stands, so it first looks at what was published and goes on after that.
The engine alone creates runs, opens (`run.started`) and settles them; a work only publishes what happens in between.

The law of a work:

1. *Logged before acted on.* What a call, a model's turn or an approval is based on was published before.
2. *A step is published once.* `publish` of a step that the log holds appends nothing and returns the event that is there:
   what was said first stays, whatever a second attempt would say.
3. *Nothing outlives the loss.* `WriterLost` and `RunSettled` are let through: the run is another's, or over.
4. *An effect has an operation id and a claim.* `claim` before it is begun, `perform` under that claim when it is done: a
   process that slept through its own replacement finds its claim void (`ClaimLost`), and its effect is not counted.
5. *A cancel is noticed* at the next await of `Desk.resting`, or by raising `RunCancelled` where `Desk.cancelled` is set. Who
   does not notice is ended; calls without a result then stand as unknown.

**To add a work:** an async callable that takes a desk (and, if it likes, has a `release` and `asks`), given by name:
`Settings(scripts={"agent": my_work}, default="agent")`; `POST /v1/runs {"input": {"scenario": "agent", …}}` plays it.
What it holds beyond its calls (a connection, a worker) it lets go of in an `async close()` of its own, if it has one: awaited
when the engine stops and its runs have ended here; the next call may begin anew. What it keeps of a run elsewhere (a workflow)
it ends in an `async abandon(desk)`: called instead of the work for a run that was cancelled before a process took it over.

Never here: how it is played (`worker.py`), a model, a tool. Checked by tests/mockserver/test_work.py.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, runtime_checkable

from reattach_mockserver.event import Operation
from reattach_mockserver.logs.base import Claim, Effect, RunRecord

_logger = logging.getLogger(__name__)


class RunCancelled(Exception):
    """A cancel of the run was recorded; it settles as cancelled once its work has let this through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """An event to be published: the step that it comes from, unique in its run, its type and its data.

    `text` is what an event of a foreign type adds to the visible text; `operation` what it tells of a side effect.
    """

    step: str
    type: str
    data: Mapping[str, Any]
    text: str | None = None
    operation: Operation | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """The run has done what it was asked; `result` is a JSON value."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The run cannot go on. `message` is shown to clients: no path and no secret."""

    code: str
    message: str
    data: Any = None


@dataclass(frozen=True, slots=True)
class Paused:
    """The run ends here and waits: `actions` are those that were published as `action.required`, as `required` made them."""

    actions: Sequence[Mapping[str, Any]]


Outcome: TypeAlias = Completed | Failed | Paused
"""How a run settles."""

ActionKind: TypeAlias = Literal["approval", "client_tool", "authorization"]


class Desk(Protocol):
    """Where a work sits: one run, its log, and the way to be heard."""

    @property
    def run(self) -> RunRecord:
        """The run as it was at the last publication."""

    @property
    def input(self) -> Any:
        """The `input` that the run was created with, a JSON value; None for a continuation without one."""

    @property
    def cancelled(self) -> asyncio.Event:
        """Set as soon as a cancel is recorded."""

    @property
    def now(self) -> Callable[[], int]:
        """The server's clock, in ms since 1970."""

    def events(self, run_id: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Return the events of this run, or of an earlier one of its session, from the first, as the log has them.

        Raises:
            LookupError: The first of them are no longer kept.
        """

    async def earlier(self) -> tuple[RunRecord, ...]:
        """Return the runs of this session before this one, oldest first."""

    def event_id(self, step: str) -> str:
        """Return the id that the event of a step has, or will have."""

    def required(
        self,
        step: str,
        kind: ActionKind,
        *,
        id: str,
        tool: str,
        arguments: Mapping[str, Any],
        operation_id: str,
        thread: str | None = None,
        expires_in_ms: int | None = None,
    ) -> Note:
        """Make the `action.required` of an action; its `data["action"]` is what `Paused` is given."""

    async def publish(
        self,
        step: str,
        type: str,
        data: Mapping[str, Any],
        *,
        text: str | None = None,
        operation: Operation | None = None,
    ) -> dict[str, Any]:
        """Append one event durably, then wake the readers; return it as the log has it.

        Raises:
            WriterLost: Another process has the run.
            RunSettled: The run is over.
            EventTooLarge: It is above the limit; let through, it fails the run as `event_too_large`.
            ValueError: The type is the engine's own, or the data are no JSON.
            LogUnavailable: The storage failed again and again.
        """

    async def publish_all(self, notes: Sequence[Note]) -> list[dict[str, Any]]:
        """Append all of them or none, in one transaction; return them as the log has them. See `publish`."""

    async def claim(self, operation_id: str) -> Claim:
        """Become the only one who may perform the operation from now on. See `EventLog.claim`."""

    async def perform(self, effect: Effect, claim: Claim) -> Effect:
        """Do the effect in the log's own ledger, unless it is done. See `EventLog.perform`.

        Raises:
            ClaimLost: Another process claimed the operation in between; nothing was done.
        """

    async def resting(self, seconds: float) -> None:
        """Wait, at most until the run is cancelled.

        Raises:
            RunCancelled: It is.
        """

    async def reached(self, point: str) -> None:
        """Pass a point between two steps: a test may hold the work there, or end the process."""


class Work(Protocol):
    """Plays a run from where its log ends. See the module for the law."""

    async def __call__(self, desk: Desk) -> Outcome:
        """Return how the run settles. What it raises, but for the exceptions of `Desk`, fails the run as `internal`."""


@runtime_checkable
class Asking(Protocol):
    """A work that says what it would still do; one that does not say is taken to do all that it asked for."""

    def asks(self, action: Mapping[str, Any]) -> bool:
        """Tell whether this required action would, approved now, be done as it was asked for."""


def is_work(playable: object) -> TypeGuard[Work]:
    """Tell what plays itself from what is laid out, a script or a recording."""
    return callable(playable)


def release_of_work(work: Work) -> str | None:
    """Return the release that the work says it is of (`release`): approvals that another asked for are stale."""
    release = getattr(work, "release", None)
    return release if isinstance(release, str) else None


async def close_work(work: Work) -> None:
    """Let a work go of what it holds beyond its calls, if it can (`close`); failing at it is its own affair."""
    await _if_it_can(work, "close")


async def abandon_work(work: Work, desk: Desk) -> None:
    """Let a work end what it keeps elsewhere of a run that it will not be called for (`abandon`), likewise."""
    await _if_it_can(work, "abandon", desk)


async def _if_it_can(work: Work, name: str, *given: Desk) -> None:
    method = getattr(work, name, None)
    if method is not None:
        try:
            await method(*given)
        except Exception:
            _logger.exception("a work failed at its %s", name)
