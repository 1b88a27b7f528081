"""What a scenario file says, as values: a script and its steps.

Pure data. Nothing here reads a file, waits, draws a random number or knows an event type of the
protocol; `parse` makes these values from text, `dump` writes them back, `expand` turns them into
what an engine plays. Numbers are already checked when they come from `parse`: milliseconds are
not negative, sizes and repeats are bounded.

Where the rules come from: the project's surface page, "Files", Scenario.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A JSON value as Python's `json` module makes it."""

JsonObject: TypeAlias = Mapping[str, Json]
"""A JSON object. Values here are read only by agreement: whoever must change one copies it."""

ClockKind: TypeAlias = Literal["real", "virtual"]
LineEnd: TypeAlias = Literal["lf", "crlf", "cr"]
Split: TypeAlias = Literal["words", "lines", "whole"] | int
EndStatus: TypeAlias = Literal["completed", "failed", "cancelled"]
ActionKind: TypeAlias = Literal["approval", "client_tool", "authorization"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a tool or a run failed: a stable code and a sentence for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a script asks of the server for its own run. None: the server's setting stands."""

    heartbeat_ms: int | None = None
    stream_age_ms: int | None = None
    retention_events: int | None = None
    retention_ms: int | None = None
    line_end: LineEnd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """A message in pieces; the pieces put together are `text` exactly.

    A number as `split`: so many characters, as a reader sees them, a piece. `every_ms` passes before each piece.
    """

    text: str
    split: Split = "words"
    every_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool call and, `takes_ms` later, its effect and its result (or `error`, then `result` is None).

    `id` None: the call id is made from the step's place. `operation_id` None: the engine names the operation. `external`:
    the effect lies outside of what the server itself keeps, and a cancel says so.
    """

    tool: str
    id: str | None = None
    operation_id: str | None = None
    arguments: JsonObject = field(default_factory=dict)
    takes_ms: int = 0
    result: Json = None
    error: Problem | None = None
    reversible: bool = True
    external: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """Producers that race for one log. Inside a branch the order stands; between branches nothing is promised."""

    branches: tuple[tuple["Step", ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Tell what the run is at."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEvent:
    """An event of a foreign type. `text` is what it adds to the visible text, None for nothing."""

    type: str
    data: JsonObject = field(default_factory=dict)
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """One large event: `{text}` of `bytes` ASCII characters, made from seed and place."""

    bytes: int
    type: str = "blob"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Quiet for so long; heartbeats go on."""

    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The same steps `times` times. `{i}` in their texts is the number of the round, from 0."""

    times: int
    steps: tuple["Step", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """The server restarts: it ends its streams, forgets what is not in its log, and serves again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The server's process ends at once; whoever started it starts it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEpoch:
    """The run's log is replaced under the same run id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Another version of the agent takes over; approvals that are pending become stale."""

    release: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseStreams:
    """The run's streams are closed between events, with the reason `max_age`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireTokens:
    """The token that created the run is good no more; its principal's other tokens are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireTo:
    """Events before `sequence` are dropped; it is the first that is kept."""

    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """For `ms`, attaches and creates are refused with `status`."""

    ms: int
    status: Literal[429, 503] = 503


ServerStep: TypeAlias = Restart | Kill | NewEpoch | Release | CloseStreams | ExpireTokens | ExpireTo | Overload


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing that a pause waits for.

    `expires_in_ms` None: never. `release_in_ms`: so long after the pause another release takes over, which
    makes the approval stale; None: none does.
    """

    id: str
    tool: str
    kind: ActionKind = "approval"
    arguments: JsonObject = field(default_factory=dict)
    operation_id: str | None = None
    thread: str | None = None
    expires_in_ms: int | None = None
    release_in_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Pause the run for its actions. It settles the run.

    The continuation plays `approved` or `rejected`, then what comes after the ask in the list around it.
    """

    actions: tuple[Action, ...]
    approved: tuple["Step", ...] = ()
    rejected: tuple["Step", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How the run ends. `problem` is there exactly when it failed; `result` only when it completed."""

    status: EndStatus = "completed"
    result: Json = None
    problem: Problem | None = None


Step: TypeAlias = Say | Tool | Parallel | Status | RawEvent | Blob | Wait | Repeat | ServerStep | Ask | End


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One scenario. Without an End as its last step the run completes with the result None.

    `seed` decides whatever is left open (the content of blobs, who wins a race). With the clock "virtual",
    waits take no time.
    """

    name: str
    seed: int = 0
    clock: ClockKind = "real"
    limits: Limits = field(default_factory=Limits)
    steps: tuple[Step, ...] = ()
