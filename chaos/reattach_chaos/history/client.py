"""What a client shows and says.

Kinds: `born`, `died`, `committed`, `delivered`, `applied`, `acked`, `discarded`, `backoff`, `surfaced`, `finished`, `exited`,
`said`.

A foreign client says `rendered` (which is `delivered` here), `received`, `gap`, `error` and `finished`; the rest is known of
ours. What a client does not say is not held against it, and not for it.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from reattach_chaos.history.record import Record, known


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Born(Record):
    """A process of the client was started; the record's `life` is its number."""

    kind: ClassVar[str] = "born"


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Died(Record):
    """A process of the client was killed, by plan or by chance."""

    kind: ClassVar[str] = "died"


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Record):
    """All events up to and including this one are in the journal. `token`: the lease under which it was written."""

    kind: ClassVar[str] = "committed"

    id: str
    token: int | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered(Record):
    """An event was shown to the application. `id`: the SSE id or the event's own; `sha256`: of its data, by `content_sha256`."""

    kind: ClassVar[str] = "delivered"

    id: str
    sha256: str | None = None
    redelivered: bool = False


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Applied(Record):
    """The application is done with all events up to and including this one; the mark that survives a kill."""

    kind: ClassVar[str] = "applied"

    id: str
    token: int | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Acked(Record):
    """The application called for an explicit confirmation of this event."""

    kind: ClassVar[str] = "acked"

    id: str


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Discarded(Record):
    """The client dropped what came, and why it says so."""

    kind: ClassVar[str] = "discarded"

    id: str
    reason: Literal["dup", "stale", "foreign"]


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff(Record):
    """The client begins to wait for so long before its next attempt; `attempt` since its last progress."""

    kind: ClassVar[str] = "backoff"

    delay_ms: float
    attempt: int = 1


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Surfaced(Record):
    """The application was told of a gap or of an error.

    Attributes:
        what: Which.
        reason: The gap's reason, or the error's code.
        after: The cursor of the last event before the gap.
        until: The cursor after which the stream goes on. None with a gap: nothing more is promised.
        missing: How many events, where it is known.
    """

    kind: ClassVar[str] = "surfaced"

    what: Literal["gap", "error"]
    reason: str = ""
    after: str | None = None
    until: str | None = None
    missing: int | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Record):
    """The client says that the run has ended so. `evidence`: from where it says to know."""

    kind: ClassVar[str] = "finished"

    status: str
    evidence: Literal["event", "status"] | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Exited(Record):
    """A process of the client ended. `code` None: it was ended by us, because its time was up (`hang`)."""

    kind: ClassVar[str] = "exited"

    code: int | None = None


@known
@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Record):
    """A line of the client that is none of the contract's: kept and counted, not judged."""

    kind: ClassVar[str] = "said"

    text: str = ""
