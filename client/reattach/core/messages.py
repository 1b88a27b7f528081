"""What the machine is told and what it asks for: plain values, no behaviour.

Inputs are past participles (a fact of the world), effects are imperatives (what the runtime must now do, in order). Only the
runtime makes inputs and performs effects; only `subscription.step` turns one into the other. Facts about failures are values
here too (`Refusal`, `Failure`): the runtime makes exceptions of them, the core raises none.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, NamedTuple

from reattach.model import GapReason, Kind, Outcome, Status

TimerName = Literal["connect", "idle", "behind", "reconnect", "budget", "poll", "resync", "stall", "stream"]
By = Literal["stream", "longpoll", "poll"]
"""How events come: on a stream; in pages, each asked for until there is something; in pages, when the status has news."""


class Mark(NamedTuple):
    """A place in one incarnation of a run's log: everything up to it, inclusive, is covered.

    `position` is the journal's own number; `sequence`, `id` and `cursor` are the server's (None where it has none, or at the
    beginning, where `sequence` is 0). `cursor` is what the server is asked after; None asks from the beginning.
    """

    position: int = 0
    epoch: str | None = None
    sequence: int = 0
    id: str | None = None
    cursor: str | None = None


UNSTATED = "\x00unstated"
"""In place of a predecessor's id: this server does not say it. (None says: there is none, it is the first.)"""


Identity = tuple[int | None, str, bytes]
"""(sequence, dedupe key, digest) of an event."""
Known = tuple[Identity, ...]
"""The identities of the newest events of this incarnation, oldest first."""


class Arrival(NamedTuple):
    """One event as a profile read it from a frame: what admission needs, and what the journal keeps.

    `dedupe` is the identity inside (run, epoch); `digest` is of the payload without volatile fields. `stored` is the JSON text
    for the journal: the vendor's own, verbatim; `wrapped` says that `data` is its member `data` (native), else it is the whole.
    `outcome` is there on the settling event alone.
    """

    id: str
    prev_id: str | None
    epoch: str | None
    sequence: int | None
    cursor: str | None
    dedupe: str
    digest: bytes
    type: str
    kind: Kind
    text: str
    time: str | None
    data: Any
    stored: str
    wrapped: bool
    outcome: Outcome | None


class Why(StrEnum):
    """Classes of refusal; a profile sorts a server's answers into these, the core acts on them and on nothing else."""

    BUSY = "busy"  # 408, 425, 429, 5xx: try again later
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    EPOCH = "epoch"
    EXPIRED = "expired"
    AHEAD = "ahead"
    CURSOR = "cursor"  # malformed or foreign
    FOREIGN = "foreign"  # not this protocol: content type, coding, redirect, an id that disagrees with its event
    UNSENDABLE = "unsendable"  # the request cannot be sent as it is: a header with a control character
    OVERSIZE = "oversize"  # one event above the policy's limit: no retry helps
    OTHER = "other"  # anything else that no repetition can mend


class Refusal(NamedTuple):
    """A definite "no" with its facts; times in seconds. `run_id` is another run that stands in the way."""

    why: Why
    detail: str = ""
    status: int | None = None
    code: str | None = None
    retry_after: float | None = None
    epoch: str | None = None
    first_sequence: int | None = None
    last_sequence: int | None = None
    run_id: str | None = None


# --------------------------------------------------------------------------------------------------- inputs


class Attached(NamedTuple):
    """The caller follows the run, and the journal was read. `committed` is where to go on.

    `outcome` is there if the journal holds the end; `before` says that this journal attached or created the run before. With
    keep="cursor", `committed` is the applied mark (at the beginning it still names the epoch that was followed, or a replaced log
    would go unnoticed), `known` is empty, and `outcome` is there only if nothing is to be delivered again.
    """

    committed: Mark
    known: Known = ()
    outcome: Outcome | None = None
    before: bool = False


class Opened(NamedTuple):
    """The server accepted the subscription. `cursor_id` is the id of the event at the cursor it was asked after.

    `heartbeat` in seconds, None where it does not say. `doubts`: sentences that name what this answer leaves unproven.
    """

    epoch: str | None = None
    cursor: str | None = None
    sequence: int | None = None
    cursor_id: str | None = UNSTATED
    head: int | None = None
    heartbeat: float | None = None
    doubts: tuple[str, ...] = ()


class Received(NamedTuple):
    """Events, in the order of the wire; all that one read brought."""

    arrivals: tuple[Arrival, ...]


class Heard(NamedTuple):
    """Bytes came, but no whole event. `growing`: they belong to an event that is still arriving.

    `beat`: seconds since the sign of life before, if that and this are nothing else (two heartbeats in a row), else None.
    """

    growing: bool = False
    beat: float | None = None


class Hinted(NamedTuple):
    """The stream's `retry:` wish, in seconds."""

    seconds: float


class Lost(NamedTuple):
    """The connection ended without being asked to: refused, reset, timed out in the network, cut in the middle."""

    detail: str = ""


class Ended(NamedTuple):
    """The body ended cleanly. Never evidence of an end of the run."""


class Refused(NamedTuple):
    """The server answered the attach with a refusal. `left`: seconds that the budget timer still has, None for endless."""

    refusal: Refusal
    left: float | None = None


class Declined(NamedTuple):
    """204: there is nothing to stream."""


class Closing(NamedTuple):
    """The server announces that it will close the stream, and why."""

    reason: str
    retry: float | None = None


class Committed(NamedTuple):
    """A commit is durable, up to `mark`. `gap` says that it was a Gap, `outcome` that it held the settling event."""

    mark: Mark
    gap: bool = False
    outcome: Outcome | None = None


class OutcomeCommitted(NamedTuple):
    """An outcome known by status alone is durable."""

    outcome: Outcome


class CommitFailed(NamedTuple):
    """The journal could not be written; nothing of the commit is in it."""

    detail: str = ""


class LeaseLost(NamedTuple):
    """Another owner took the run over; this one's commits are refused from now on."""

    detail: str = ""


class Elapsed(NamedTuple):
    """A timer fired."""

    timer: TimerName


class StatusRead(NamedTuple):
    """The server's status of the run, in answer to `ReadStatus(era, attempt)`."""

    era: int
    attempt: int
    epoch: str | None
    head: int | None
    status: Status
    outcome: Outcome | None = None


class StatusFailed(NamedTuple):
    """A status read failed, definitely or not; never evidence of anything but a missing run or a bad token."""

    era: int
    attempt: int
    refusal: Refusal


class SnapshotRead(NamedTuple):
    """The server's state at a boundary, in answer to `ReadSnapshot(era)`."""

    era: int
    boundary: Mark
    state: Any = None


class SnapshotFailed(NamedTuple):
    """The snapshot could not be had."""

    era: int
    refusal: Refusal


class Woke(NamedTuple):
    """The machine slept, or its wall clock was put forward: what was open may be dead.

    `waited` seconds passed since the wait for the next attempt began, those that no timer saw included.
    """

    waited: float


class Full(NamedTuple):
    """With keep="cursor": the handler is behind, stop reading. Said again after each step for as long as it is so."""


class Drained(NamedTuple):
    """With keep="cursor": the handler caught up."""


class Closed(NamedTuple):
    """The caller stopped following."""


Input = (
    Attached
    | Opened
    | Received
    | Heard
    | Hinted
    | Lost
    | Ended
    | Refused
    | Declined
    | Closing
    | Committed
    | OutcomeCommitted
    | CommitFailed
    | LeaseLost
    | Elapsed
    | StatusRead
    | StatusFailed
    | SnapshotRead
    | SnapshotFailed
    | Woke
    | Full
    | Drained
    | Closed
)


# --------------------------------------------------------------------------------------------------- effects

EARLIEST = "earliest"
"""In place of a cursor: the oldest event kept (only for on_gap="continue")."""


class Open(NamedTuple):
    """Open one connection after `after` (None: the beginning); pages that are asked for one after another count as one."""

    after: str | None
    attempt: int
    by: By = "stream"


class Close(NamedTuple):
    """Close the stream connection, if there is one; forget what it still says."""


class Commit(NamedTuple):
    """Make `batch` durable in one transaction with the cursor; refused unless the journal stands at `prev`."""

    prev: Mark
    batch: tuple[Arrival, ...]
    mark: Mark


class CommitGap(NamedTuple):
    """Make a gap durable; it takes one position, and begins a new incarnation at `mark`."""

    prev: Mark
    reason: GapReason
    mark: Mark
    missing: int | None
    state: Any


class CommitOutcome(NamedTuple):
    """Make an outcome that only the status told durable."""

    prev: Mark
    outcome: Outcome


class Deliver(NamedTuple):
    """The application may read up to this position."""

    position: int


class StartTimer(NamedTuple):
    """Start, or start anew, the timer of this name; the wait is drawn uniformly from [low, high] seconds."""

    timer: TimerName
    low: float
    high: float


class StopTimer(NamedTuple):
    """Stop the timer of this name, if it runs."""

    timer: TimerName


class ReadStatus(NamedTuple):
    """Read the status by id; the answer names `era` and `attempt` again."""

    era: int
    attempt: int


class ReadSnapshot(NamedTuple):
    """Read the snapshot; the answer names `era` again."""

    era: int


class Failure(NamedTuple):
    """Why a subscription ended without an outcome; `code` is the error's class name in snake case."""

    code: str
    detail: str = ""
    refusal: Refusal | None = None
    reason: GapReason | None = None
    attempts: int = 0


class Finish(NamedTuple):
    """The subscription is over, with the run's outcome or with a failure of the subscription."""

    outcome: Outcome | None = None
    failure: Failure | None = None


class Notice(NamedTuple):
    """Something that a person may want to know and that changes nothing."""

    code: Literal["stall", "fast_loop", "declined", "buffered", "unproven"]
    detail: str


Effect = (
    Open
    | Close
    | Commit
    | CommitGap
    | CommitOutcome
    | Deliver
    | StartTimer
    | StopTimer
    | ReadStatus
    | ReadSnapshot
    | Finish
    | Notice
)
