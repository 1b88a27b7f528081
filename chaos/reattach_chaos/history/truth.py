"""What is true on the server and in the stores, and the client's calls with consequences.

Read by the control reader past every fault: `logged`, `status`, `snapshot`, `created`, `effect`, `counts`, `terminal`. Asked by
the client: `create`, `cancel`, `answer`. Read from the file of the client's store: `journal`, `lease`.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from reattach_chaos.history.record import Record, known


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Logged(Record):
    """One event of the server's log, in the log's order.

    Attributes:
        id: The event's own id.
        cursor: Its SSE id.
        sequence: Its number in its epoch.
        type: The vendor's type.
        sha256: Of its data as `content_sha256` has it; `wire_sha256`: of the bytes that a face sends as its data.
        settles: The status of the run that it settles, None where it settles none.
        operation_id: The operation that it calls for, None for none.
        by: "control": read by who was there from the start; "replay": read again after the end.
    """

    kind: ClassVar[str] = "logged"

    id: str
    cursor: str
    sequence: int
    epoch: str = ""
    type: str = ""
    sha256: str | None = None
    wire_sha256: str | None = None
    settles: str | None = None
    operation_id: str | None = None
    by: Literal["control", "replay"] = "control"


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Status(Record):
    """A status that `who` read: the run's, with the newest sequence that it names."""

    kind: ClassVar[str] = "status"

    status: str
    head: int | None = None
    epoch: str | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Record):
    """A snapshot that `who` read: its boundary, and the run's status in it."""

    kind: ClassVar[str] = "snapshot"

    boundary: str
    status: str = ""


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Create(Record):
    """The client asks for a run, under this key."""

    kind: ClassVar[str] = "create"

    key: str | None = None
    sha256: str | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Created(Record):
    """The server holds this run (the record's `run`), made by a create of the case; the control reader counts them at the end."""

    kind: ClassVar[str] = "created"

    key: str | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(Record):
    """The client asks for the run's end."""

    kind: ClassVar[str] = "cancel"


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Record):
    """The client answers a required action."""

    kind: ClassVar[str] = "answer"

    action_id: str


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Effect(Record):
    """A side effect that is in its ledger. The record's `who` is whose: "server" for tools, a client's for its handler's rows."""

    kind: ClassVar[str] = "effect"

    operation_id: str


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(Record):
    """How much the server did: in the case, and in the same run without any fault (`twin`)."""

    kind: ClassVar[str] = "counts"

    of: Literal["case", "twin"]
    events: int
    calls: int = 0


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal(Record):
    """The end as one witness has it."""

    kind: ClassVar[str] = "terminal"

    witness: Literal["stream", "status", "control"]
    status: str


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Journal(Record):
    """What the client's journal holds of the run, in its order: event ids; None is a Gap."""

    kind: ClassVar[str] = "journal"

    ids: tuple[str | None, ...] = ()


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Lease(Record):
    """The lease of the journal was taken (over): whoever writes from now on has this token."""

    kind: ClassVar[str] = "lease"

    token: int
