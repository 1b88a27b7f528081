"""The nouns: what the application reads and what every room passes on. Imports nothing of ours.

Frozen, slotted, keyword-only values; tuples where plural. They hold facts, never behaviour that waits, stores or decides.
The names and their fields are the surface's (section 1.3); words are the glossary's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

Kind = Literal["text", "message", "tool_call", "tool_result", "action", "status", "end", "gap", "other"]
GapReason = Literal["expired", "epoch", "diverged", "hole", "no_log", "refused"]
Phase = Literal["detached", "attaching", "replaying", "live", "waiting", "polling", "following", "ended"]
Needs = Literal["nothing", "follow", "respond", "reconcile", "repair"]
OnGap = Literal["raise", "snapshot", "continue"]
Evidence = Literal["event", "status"]


class Status(StrEnum):
    """The authoritative state of a run; a word that we do not know is `unknown`, never an end."""

    QUEUED = "queued"
    RUNNING = "running"
    REQUIRES_ACTION = "requires_action"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def settled(self) -> bool:
        """Whether the run's log can grow no more. A pause settles the run, not the job."""
        return self in _SETTLED


_SETTLED = frozenset({Status.REQUIRES_ACTION, Status.COMPLETED, Status.FAILED, Status.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Events that exist, or existed, and cannot be had; named, never passed over in silence.

    `after` is the cursor of the last event before the gap, `until` the cursor after which the stream goes on, `missing` their
    distance where both are of one epoch, else None. `snapshot` is the server's state at `until` where one was read.
    """

    run_id: str
    reason: GapReason
    after: str | None = None
    until: str | None = None
    missing: int | None = None
    snapshot: Any = None

    def __str__(self) -> str:
        """Return one sentence for a person."""
        if self.missing is None:
            return f"events are missing: {_GAP_WORDS[self.reason]}"
        some = "1 event is missing" if self.missing == 1 else f"{self.missing} events are missing"
        return f"{some}: {_GAP_WORDS[self.reason]}"


_GAP_WORDS: dict[str, str] = {
    "expired": "they are no longer kept",
    "epoch": "the server's log was replaced",
    "diverged": "the server's log lost its tail and went on differently",
    "hole": "the server does not send them",
    "no_log": "this server keeps no log of events",
    "refused": "the server refused the cursor",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One immutable entry of a run's log, on disk before you see it.

    `type` and `data` are the vendor's own. `text` is what it adds to the visible text: printing every text in order prints
    exactly `view.text`. `cursor` names the place of this event for a relay; `sequence` is there where the vendor numbers.
    `redelivered` says that it may have been handed out before the process ended.
    """

    id: str
    run_id: str
    type: str
    data: Any
    kind: Kind
    text: str = ""
    sequence: int | None = None
    cursor: str | None = None
    time: datetime | None = None
    settles: bool = False
    redelivered: bool = False
    gap: Gap | None = None
    position: int = field(default=0, repr=False)
    """The journal's own number of the event in its run, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as folded so far; `complete` once the server said so."""

    id: str
    role: str
    text: str
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool as folded so far; `complete` once its result or error is known."""

    id: str
    name: str
    arguments: Any
    result: Any = None
    complete: bool = False
    operation_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a run failed, in the server's words."""

    code: str
    message: str
    data: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A person's or program's word on one required action; made by `RequiredAction`."""

    action_id: str
    decision: Literal["approve", "reject"] | None = None
    reason: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredAction:
    """A recorded pause that names what input it needs.

    `thread` is the sub-agent that it came from, None for the main one. `resolution` says what became of it where the server
    told: "approved", "rejected", "answered", "lapsed", "cancelled", "expired".
    """

    id: str
    kind: Literal["approval", "client_tool", "authorization", "other"]
    tool: str | None = None
    arguments: Any = None
    source_event_id: str | None = None
    operation_id: str | None = None
    expires_at: datetime | None = None
    thread: str | None = None
    resolution: str | None = None

    def approve(self) -> Answer:
        """Return the answer "go on"."""
        return Answer(action_id=self.id, decision="approve")

    def reject(self, reason: str = "") -> Answer:
        """Return the answer "do not", with a reason for the agent."""
        return Answer(action_id=self.id, decision="reject", reason=reason)

    def answer(self, value: Any) -> Answer:
        """Return a client tool's result (a JSON value) as the answer."""
        return Answer(action_id=self.id, value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An effect and what its authority knows of it. `external` says that it is outside the agent's sandbox, None: not known."""

    id: str
    tool: str | None = None
    status: Literal["pending", "committed", "failed", "unknown"] = "unknown"
    reversible: bool | None = None
    run_id: str | None = None
    result: Any = None
    external: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended, with the evidence: its settling event, or a settled status."""

    run_id: str
    status: Status
    result: Any = None
    text: str = ""
    problem: Problem | None = None
    required_actions: tuple[RequiredAction, ...] = ()
    operations: tuple[Operation, ...] = ()
    gaps: tuple[Gap, ...] = ()
    release: str | None = None
    evidence: Evidence = "event"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What the subscription is doing now; `str()` is one line for a person.

    `retry_in` is in seconds; `replayed` counts the events of the current replay, `behind` how many the server is known to
    have that we have not.
    """

    phase: Phase = "detached"
    reason: str = ""
    attempt: int = 0
    retry_in: float | None = None
    replayed: int = 0
    behind: int | None = None

    def __str__(self) -> str:
        """Return one line such as "reconnecting in 3 s (attempt 4: connection reset)"."""
        why = f" (attempt {self.attempt}: {self.reason})" if self.reason and self.attempt else ""
        match self.phase:
            case "waiting":
                soon = (
                    "now" if not self.retry_in else f"in {self.retry_in:.0f} s" if self.retry_in >= 1 else "in a moment"
                )
                return f"reconnecting {soon}{why}"
            case "attaching":
                return f"connecting{why}"
            case "replaying":
                left = f" of {self.replayed + self.behind}" if self.behind else ""
                return f"catching up: {self.replayed}{left} events"
            case "following":
                return "following what another process writes"
            case "polling":
                return f"asking for the status from time to time{why}"
            case "live" | "detached" | "ended":
                return self.phase


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The fold of the journal: the whole truth that a screen shows, to be redrawn, never added to."""

    run_id: str
    status: Status = Status.UNKNOWN
    text: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolCall, ...] = ()
    required_actions: tuple[RequiredAction, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cursor: str | None = None
    connection: Connection = Connection()
